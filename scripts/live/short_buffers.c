/*
 * Gives the TCP sockets of another program the settings that draft-ietf-ippm-responsiveness asks for:
 *
 *   cc -shared -fPIC -O2 -o short_buffers.so short_buffers.c -ldl
 *   LD_PRELOAD=./short_buffers.so PROGRAM ...
 *
 * TCP_NODELAY is on, whatever the program asks for: a request is sent at once, and does not wait for the acknowledgement
 * of what was sent before it (Nagle's algorithm, RFC 9293, section 3.7.4). TCP_NOTSENT_LOWAT is 5 ms of the connection's
 * rate, and the program may write only when less is unsent: a request on a connection of the load does not wait behind what
 * the load wrote before it. The kernel alone would take up to 64 KiB beyond the limit, because it appends to the last unsent
 * segment. The segments of a load stay full (MSG_MORE), however short the program's writes are: a queue that counts packets
 * would else be shorter.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define LEAST 4096
#define MOST 65536
#define PER_SECOND 200

/* A connection that has sent more than this carries load. */
#define LOAD 100000

/* Unsent bytes that a connection may have. */
static int limit(const struct tcp_info *info)
{
	__u64 bytes = info->tcpi_delivery_rate / PER_SECOND;

	return bytes < LEAST ? LEAST : bytes > MOST ? MOST : (int)bytes;
}

static int is_tcp(int fd)
{
	int saved = errno, protocol = 0;
	socklen_t length = sizeof(protocol);
	int found = getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;

	errno = saved;
	return found;
}

/* Whether the kernel has few unsent bytes. If not, it wakes the program when it does. */
static int has_room(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLOUT };

	return poll(&polled, 1, 0) != 0;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	static int (*next)(int, const struct sockaddr *, socklen_t);

	if (!next)
		next = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
	if (is_tcp(fd)) {
		int on = 1;

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	return next(fd, address, length);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	static int (*next)(int, int, int, const void *, socklen_t);
	int on = 1;

	if (!next)
		next = (int (*)(int, int, int, const void *, socklen_t))dlsym(RTLD_NEXT, "setsockopt");
	if (level == IPPROTO_TCP && name == TCP_NODELAY)
		return next(fd, level, name, &on, sizeof(on));
	return next(fd, level, name, value, length);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
	static ssize_t (*next)(int, const void *, size_t, int);
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	size_t sent = 0;
	int most;

	if (!next)
		next = (ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
	if (!is_tcp(fd))
		return next(fd, bytes, length, flags);
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
	most = limit(&info);
	if (info.tcpi_bytes_acked > LOAD)
		flags |= MSG_MORE;
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof(most));
	/* Whoever gets a part of it sent waits for room: so has_room() must have said that there is none. */
	do {
		size_t piece = length - sent < (size_t)most ? length - sent : (size_t)most;
		ssize_t taken;

		if (!has_room(fd)) {
			errno = EAGAIN;
			break;
		}
		taken = next(fd, (const char *)bytes + sent, piece, flags);
		if (taken < 0)
			break;
		sent += taken;
	} while (sent < length);
	return sent > 0 || length == 0 ? (ssize_t)sent : -1;
}

ssize_t writev(int fd, const struct iovec *vector, int count)
{
	static ssize_t (*next)(int, const struct iovec *, int);

	if (!next)
		next = (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
	if (!is_tcp(fd))
		return next(fd, vector, count);
	while (count > 1 && vector->iov_len == 0) {
		vector++;
		count--;
	}
	return count > 0 ? send(fd, vector->iov_base, vector->iov_len, MSG_NOSIGNAL) : 0;
}
