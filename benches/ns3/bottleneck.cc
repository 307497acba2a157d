// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The benchmark scenario on ns-3: long CUBIC downloads from a server through a router to a client.
//
//     server ── 1 Gbit/s, 5 ms ── router ── 100 Mbit/s, 5 ms, qdisc ── client
//
// It does the work that `bufferscope`'s own benchmark does, and counts the same thing: a *hop* is one packet that was
// fully sent on one link, in either direction. The answer is one line of JSON with the same names.
//
// This file is ours and licensed as above. A binary made from it is linked with ns-3, which is under GPL-2.0, so the
// binary as a whole is too; it is built where it is wanted and never distributed.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

namespace
{

constexpr std::uint32_t kPayloadBytes = 1448; // a 1500-byte packet with TCP timestamps
constexpr std::uint32_t kSocketBufferBytes = 6 * 1024 * 1024; // Linux' largest net.ipv4.tcp_rmem
constexpr std::uint16_t kFirstTcpPort = 5001;

struct Options
{
    std::uint32_t flows = 1;
    std::string qdisc = "pfifo";
    double seconds = 60.0;
};

struct Network
{
    ns3::Ptr<ns3::Node> server;
    ns3::Ptr<ns3::Node> client;
    ns3::Ipv4Address clientAddress;
};

std::uint64_t hops = 0;

void CountHop(ns3::Ptr<const ns3::Packet>)
{
    ++hops;
}

double CpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Largest resident set since the last ResetPeak, in KiB (VmHWM in proc(5)). The value of getrusage(2) begins with that
/// of the process that started this one.
long PeakMemoryKib()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
    {
        if (line.rfind("VmHWM:", 0) == 0)
        {
            return std::stol(line.substr(6));
        }
    }
    std::cerr << "no VmHWM in /proc/self/status" << std::endl;
    std::exit(EXIT_FAILURE);
}

/// Sets the largest resident set back to the present one, and returns that.
long ResetPeak()
{
    std::ofstream("/proc/self/clear_refs") << "5";
    return PeakMemoryKib();
}

[[noreturn]] void Refuse(const std::string& problem)
{
    std::cerr << "bottleneck: " << problem << std::endl;
    std::exit(2);
}

Options ReadCommandLine(int argc, char* argv[])
{
    Options options;
    ns3::CommandLine line(__FILE__);
    line.AddValue("flows", "number of TCP connections", options.flows);
    line.AddValue("qdisc", "the bottleneck's queueing discipline: pfifo or codel, 1000 packets", options.qdisc);
    line.AddValue("seconds", "simulated time", options.seconds);
    line.Parse(argc, argv);
    if (options.qdisc != "pfifo" && options.qdisc != "codel")
    {
        Refuse("--qdisc: found " + options.qdisc + "; allowed: pfifo, codel");
    }
    if (options.flows < 1 || options.flows > 1000)
    {
        Refuse("--flows: found " + std::to_string(options.flows) + "; allowed: 1 to 1000");
    }
    return options;
}

/// Linux-like hosts: CUBIC, SACK, timestamps, an initial window of 10, an acknowledgement for every second segment.
void ConfigureTcp()
{
    using ns3::Config::SetDefault;
    SetDefault("ns3::TcpL4Protocol::SocketType", ns3::TypeIdValue(ns3::TcpCubic::GetTypeId()));
    SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(kPayloadBytes));
    SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(10));
    SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(2));
    SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(kSocketBufferBytes));
    SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(kSocketBufferBytes));
    SetDefault("ns3::TcpSocketBase::Sack", ns3::BooleanValue(true));
    SetDefault("ns3::TcpSocketBase::Timestamp", ns3::BooleanValue(true));
    SetDefault("ns3::TcpSocketBase::MinRto", ns3::TimeValue(ns3::MilliSeconds(200)));
}

/// Joins two nodes by a full-duplex link whose devices hold one packet, so that what waits, waits in the qdisc.
ns3::NetDeviceContainer Connect(ns3::Ptr<ns3::Node> a, ns3::Ptr<ns3::Node> b, const std::string& rate)
{
    ns3::PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", ns3::StringValue(rate));
    link.SetChannelAttribute("Delay", ns3::StringValue("5ms"));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns3::StringValue("1p"));
    ns3::NetDeviceContainer devices = link.Install(a, b);
    for (auto device = devices.Begin(); device != devices.End(); ++device)
    {
        (*device)->TraceConnectWithoutContext("PhyTxEnd", ns3::MakeCallback(&CountHop));
    }
    return devices;
}

void InstallQdisc(const ns3::NetDeviceContainer& devices, const std::string& qdisc)
{
    const std::string type = qdisc == "codel" ? "ns3::CoDelQueueDisc" : "ns3::FifoQueueDisc";
    ns3::TrafficControlHelper control;
    control.SetRootQueueDisc(type, "MaxSize", ns3::StringValue("1000p"));
    control.Install(devices);
}

Network Build(const std::string& bottleneckQdisc)
{
    ns3::NodeContainer nodes(3);
    const auto server = nodes.Get(0);
    const auto router = nodes.Get(1);
    const auto client = nodes.Get(2);
    const auto access = Connect(server, router, "1Gbps");
    const auto bottleneck = Connect(router, client, "100Mbps");

    ns3::InternetStackHelper().Install(nodes);
    InstallQdisc(access, "pfifo");
    InstallQdisc(bottleneck, bottleneckQdisc);

    ns3::Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.1.0", "255.255.255.0");
    addresses.Assign(access);
    addresses.SetBase("10.0.2.0", "255.255.255.0");
    const auto assigned = addresses.Assign(bottleneck);
    ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    return {server, client, assigned.GetAddress(1)};
}

void StartDownload(const Network& network, std::uint16_t port)
{
    const std::string tcp = "ns3::TcpSocketFactory";
    ns3::PacketSinkHelper sink(tcp, ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
    sink.Install(network.client);
    ns3::BulkSendHelper bulk(tcp, ns3::InetSocketAddress(network.clientAddress, port));
    bulk.SetAttribute("SendSize", ns3::UintegerValue(kPayloadBytes));
    bulk.Install(network.server);
}

std::uint64_t DeliveredBytes(const ns3::Ptr<ns3::Node>& client)
{
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < client->GetNApplications(); ++i)
    {
        bytes += ns3::DynamicCast<ns3::PacketSink>(client->GetApplication(i))->GetTotalRx();
    }
    return bytes;
}

} // namespace

int main(int argc, char* argv[])
{
    const Options options = ReadCommandLine(argc, argv);
    const long memoryBefore = ResetPeak();
    ConfigureTcp();
    const Network network = Build(options.qdisc);
    for (std::uint32_t flow = 0; flow < options.flows; ++flow)
    {
        StartDownload(network, kFirstTcpPort + flow);
    }

    const double before = CpuSeconds();
    ns3::Simulator::Stop(ns3::Seconds(options.seconds));
    ns3::Simulator::Run();
    const double cpu = CpuSeconds() - before;

    const double goodput = 8e-6 * double(DeliveredBytes(network.client)) / options.seconds;
    std::cout << "{\"qdisc\": \"" << options.qdisc << "\", \"flows\": " << options.flows
              << ", \"seconds\": " << options.seconds << ", \"hops\": " << hops
              << ", \"events\": " << ns3::Simulator::GetEventCount() << ", \"cpu_s\": " << cpu
              << ", \"hops_per_cpu_s\": " << std::uint64_t(double(hops) / cpu) << ", \"goodput_mbit\": " << goodput
              << ", \"peak_growth_kib\": " << PeakMemoryKib() - memoryBefore << "}" << std::endl;
    ns3::Simulator::Destroy();
    return 0;
}
