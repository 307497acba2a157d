// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The benchmark scenario on htsim: long NewReno downloads from a server through a router to a client.
//
//     server ── 1 Gbit/s, 5 ms ── router ── 100 Mbit/s, 5 ms, 1000 packets ── client
//
// It counts the same thing as `bufferscope`'s own benchmark: a *hop* is one packet that was fully sent on one link, in
// either direction. The answer is one line of JSON with the same names. The work is not quite the same: htsim's TCP has
// neither SACK nor delayed ACKs, so there is an ACK for every segment, and nothing is recorded.

#include "clock.h"
#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace
{

constexpr int kPacketBytes = 1500;
constexpr int kPackets = 1000;

std::uint64_t hops = 0;
std::uint64_t delivered = 0;

/// A queue and its link, which counts the packets that it has sent.
class CountedQueue : public Queue
{
  public:
    CountedQueue(std::uint64_t megabits, EventList& events) :
        Queue(speedFromMbps(megabits), memFromPkt(kPackets), events, nullptr)
    {
    }

  protected:
    void completeService() override
    {
        ++hops;
        Queue::completeService();
    }
};

/// One direction of the path: two links with their delays.
struct Direction
{
    Direction(std::uint64_t first, std::uint64_t second, EventList& events) :
        firstQueue(first, events), secondQueue(second, events),
        firstPipe(timeFromMs(5), events), secondPipe(timeFromMs(5), events)
    {
    }

    route_t* To(PacketSink& sink)
    {
        auto* route = new route_t();
        route->push_back(&firstQueue);
        route->push_back(&firstPipe);
        route->push_back(&secondQueue);
        route->push_back(&secondPipe);
        route->push_back(&sink);
        return route;
    }

    CountedQueue firstQueue;
    CountedQueue secondQueue;
    Pipe firstPipe;
    Pipe secondPipe;
};

double CpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

} // namespace

/// Arguments: the number of flows and of simulated seconds.
int main(int argc, char* argv[])
{
    const int flows = argc > 1 ? std::atoi(argv[1]) : 1;
    const int seconds = argc > 2 ? std::atoi(argv[2]) : 60;
    if (flows < 1 || seconds < 1)
    {
        std::cerr << "usage: dumbbell [FLOWS] [SECONDS]" << std::endl;
        return 2;
    }
    std::srand(1);
    EventList events;
    events.setEndtime(timeFromSec(seconds));
    Packet::set_packet_size(kPacketBytes);

    Direction down(1000, 100, events);
    Direction up(100, 1000, events);
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    std::vector<std::unique_ptr<TcpSrc>> sources;
    std::vector<std::unique_ptr<TcpSink>> sinks;
    for (int flow = 0; flow < flows; ++flow)
    {
        sources.emplace_back(new TcpSrc(nullptr, nullptr, events));
        sinks.emplace_back(new TcpSink());
        timers.registerTcp(*sources.back());
        const auto start = simtime_picosec(drand() * double(timeFromMs(1)));
        sources.back()->connect(*down.To(*sinks.back()), *up.To(*sources.back()), *sinks.back(), start);
    }

    std::cout.setstate(std::ios::failbit); // htsim prints what its TCP does
    const double before = CpuSeconds();
    std::uint64_t count = 0;
    while (events.doNextEvent())
    {
        ++count;
    }
    const double cpu = CpuSeconds() - before;
    std::cout.clear();
    for (const auto& sink : sinks)
    {
        delivered += sink->cumulative_ack();
    }
    std::cout << "{\"qdisc\": \"pfifo\", \"flows\": " << flows << ", \"seconds\": " << seconds << ", \"hops\": " << hops
              << ", \"events\": " << count << ", \"delivered_bytes\": " << delivered << ", \"cpu_s\": " << cpu
              << ", \"hops_per_cpu_s\": " << (cpu > 0 ? double(hops) / cpu : 0.0) << "}" << std::endl;
    return 0;
}
