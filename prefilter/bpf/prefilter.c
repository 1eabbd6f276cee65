// The pre-filter at the kernel's receive hook: the verdict of docs/prefilter.md on native orders in UDP datagrams of LTP,
// before the gateway's socket has them. It uses no header but this file, so clang is all that a build needs.
//
// Every order of a session goes on to the socket, a refused one too: it takes its sequence number there, and its verdict
// stands in the ring before it. What has our port and belongs to no session is dropped, and so is an order for whose
// verdict the ring has no room: it is sent again.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define INLINE static inline __attribute__((always_inline))

// The kernel's words, from linux/bpf.h.
struct context { u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex; };
enum { XDP_DROP = 1, XDP_PASS = 2 };
enum { RING_NO_WAKEUP = 1 };
static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*ktime_ns)(void) = (void *)5;
static void *(*ring_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ring_submit)(void *record, u64 flags) = (void *)132;

// Maps, by the names that the loader knows.
extern u8 flows[], table[], due[], touch[], control[], counters[], seen[], ring[];

// By the local port, as the frame has it: whose orders come there. Addresses, ports: as the frame has them.
struct flow {
    u32 source;
    u32 local;            // 0: any
    u32 tag;              // 0: nobody is there
    u32 index;
    u32 window_mask;
    u32 session;          // ANY: whatever the message says
    u16 port;
    u16 trailer;          // bytes behind the payload
};
#define ANY 0xffffffffu

// An entry of the table of limits: 0 is the head, then sessions, then instruments.
struct head { u32 generation, sessions; u64 symbols, pad; };
struct session { u32 interval, pad; u64 ahead, pad2; };
struct symbol { u32 max_quantity, route; s64 lowest, highest; };
struct touch { s64 bid, ask; };
struct control { u32 enable, kill; u64 closes_at; };  // 0: never
struct counters { u64 received, passed, refused, reasons[9], strangers, repeats, lost; };

// As `Record` of xdp/mod.rs has it: a verdict of 16 bytes, and what it was given on.
struct record {
    u32 sequence, generation;
    u16 reasons;
    u8 action, route;
    u32 reserved;
    u32 flow;
    u16 length, reserved2;
    u64 message[6];
};

enum { LEN = 1, FIELD = 2, KILL = 4, SESSION = 8, SYMBOL = 16, QTY = 32, PRICE = 64, RATE = 128, TOUCH = 256 };
enum { REFUSE = 1, MARKETABLE = 2, CLOSED = 4 };
#define HEADER(template) (40ull | (u64)(template) << 16 | 0x4754ull << 32)
#define NONE ((s64)1 << 63)

// Ethernet, IPv4 without options, UDP, LTP with its full header.
struct frame {
    u8 ethernet[12];
    u16 ethertype;
    u8 version_and_length, service;
    u16 total_length, identification, fragment;
    u8 time_to_live, protocol;
    u16 checksum;
    u32 source, destination;
    u16 source_port, destination_port, udp_length, udp_checksum;
    u32 tag, sequence, ack;
    u16 length;
    u8 kind, flags;
} __attribute__((packed, aligned(2)));
#define MESSAGE 58
_Static_assert(sizeof(struct frame) == MESSAGE, "the order begins at byte 16 of the datagram");
enum { LTP_DATA = 1 };

#define BIG_ENDIAN_16(x) (u16)((x) << 8 | (x) >> 8)

struct order {
    u64 now;
    u64 header, client_order_id;
    s64 price;
    u32 instrument, quantity;
    u16 session;
    u8 side, flags;
    u32 post_only;
};

INLINE int is_formed(const struct order *order)
{
    u32 type = order->flags >> 4, time_in_force = order->flags & 15;

    if (order->client_order_id == 0)
        return 0;
    if (order->header == HEADER(4))
        return 1;
    if (order->side != 1 && order->side != 2)
        return 0;
    if (order->header == HEADER(2))
        return 1;
    if (order->quantity == 0 || order->quantity == 0xffffffffu)
        return 0;
    if (order->header == HEADER(3))
        return order->price != NONE;
    if (order->header != HEADER(1) || time_in_force > 7 || time_in_force == 5)
        return 0;
    return (type == 1 && order->price == NONE) || (type == 2 && order->price != NONE);
}

// The verdict, but for sequence and generation; an order that passes is charged to its session.
INLINE void judge(const struct order *order, u32 of_session, struct record *record)
{
    u32 zero = 0, key;
    u32 reasons = 0, action = 0, is_order = 1, is_known = 0, is_open = 0, killed = 1;
    void *limits = map_lookup(table, &zero);
    const struct control *state = map_lookup(control, &zero);
    const struct head *head = limits ? map_lookup(limits, &zero) : 0;
    const struct session *session = 0;
    u64 *due_at = 0;

    if (!state || !head)
        return;
    record->generation = head->generation;
    if (state->enable)
        is_open = state->closes_at == 0 || ktime_ns() < state->closes_at;
    killed = state->kill;
    action = is_open ? 0 : CLOSED;
    if (record->length != 48) {
        record->reasons = LEN;
        record->action = action | REFUSE;
        return;
    }
    if (order->session < head->sessions && (of_session == ANY || of_session == order->session)) {
        key = 1 + order->session;
        session = map_lookup(limits, &key);
        is_known = session && session->interval != 0;
    }
    if (!is_known)
        reasons |= SESSION;
    if (!is_formed(order)) {
        reasons |= FIELD;
    } else {
        const struct symbol *symbol = 0;
        is_order = order->header == HEADER(1) || order->header == HEADER(3);
        if (order->instrument < head->symbols) {
            key = 1 + head->sessions + order->instrument;
            symbol = map_lookup(limits, &key);
            if (symbol && symbol->max_quantity == 0)
                symbol = 0;
        }
        if (symbol)
            record->route = symbol->route;
        if (is_order && !symbol) {
            reasons |= SYMBOL;
        } else if (is_order) {
            const struct touch *best;
            int meets = 1;
            key = order->instrument;
            best = map_lookup(touch, &key);
            if (best && order->price != NONE)
                meets = order->side == 1 ? order->price >= best->ask : order->price <= best->bid;
            if (meets)
                action |= MARKETABLE;
            if (meets && order->post_only)
                reasons |= TOUCH;
            if (order->quantity > symbol->max_quantity)
                reasons |= QTY;
            if (order->price != NONE && (order->price < symbol->lowest || order->price > symbol->highest))
                reasons |= PRICE;
        }
    }
    if (!is_open || (killed && is_order))
        reasons |= KILL;
    if (is_known && is_order && !(reasons & FIELD)) {
        key = order->session;
        due_at = map_lookup(due, &key);
        if (due_at) {
            u64 before = *due_at;
            if (before > order->now + session->ahead) {
                reasons |= RATE;
            } else if (reasons == 0) {
                u64 after = (before > order->now ? before : order->now) + session->interval;
                // Orders of a session come on one queue; should two meet all the same, one is refused.
                if (__sync_val_compare_and_swap(due_at, before, after) != before)
                    reasons |= RATE;
            }
        } else {
            reasons |= RATE;
        }
    }
    record->reasons = reasons;
    record->action = action | (reasons ? REFUSE : 0);
}

INLINE void count(struct counters *counts, u32 reasons)
{
    __sync_fetch_and_add(&counts->received, 1);
    if (reasons == 0) {
        __sync_fetch_and_add(&counts->passed, 1);
        return;
    }
    __sync_fetch_and_add(&counts->refused, 1);
#pragma clang loop unroll(full)
    for (u32 bit = 0; bit < 9; bit++)
        if (reasons >> bit & 1)
            __sync_fetch_and_add(&counts->reasons[bit], 1);
}

INLINE int filter(struct context *context, u64 now, u32 post_only)
{
    u8 *data = (u8 *)(u64)context->data, *end = (u8 *)(u64)context->data_end;
    struct frame *frame = (struct frame *)data;
    struct order order = {};
    struct record *record;
    struct counters *counts;
    const struct flow *flow;
    u64 *judged;
    u32 key, zero = 0, udp_length;

    if (data + 42 > end || frame->ethertype != BIG_ENDIAN_16(0x0800) || frame->version_and_length != 0x45 ||
        frame->protocol != 17 || frame->fragment & BIG_ENDIAN_16(0x3fff))
        return XDP_PASS;
    key = frame->destination_port;
    flow = map_lookup(flows, &key);
    counts = map_lookup(counters, &zero);
    if (!flow || !counts || (flow->local && flow->local != frame->destination))
        return XDP_PASS;
    if (data + MESSAGE > end)
        goto stranger;
    // A handshake may come from anywhere.
    if (frame->tag == 0)
        return XDP_PASS;
    if (frame->tag != flow->tag || frame->source != flow->source || frame->source_port != flow->port)
        goto stranger;
    udp_length = BIG_ENDIAN_16(frame->udp_length);
    // What is no order, or contradicts itself, is for the protocol to judge.
    if (frame->kind != LTP_DATA || udp_length != 24u + frame->length + flow->trailer)
        return XDP_PASS;
    if (frame->length == 48 && data + MESSAGE + 48 > end)
        return XDP_PASS;

    key = flow->index + (frame->sequence & flow->window_mask);
    judged = map_lookup(seen, &key);
    if (!judged)
        goto stranger;
    if (*judged == (1ull << 32 | frame->sequence)) {
        __sync_fetch_and_add(&counts->repeats, 1);
        return XDP_PASS;
    }
    record = ring_reserve(ring, sizeof(*record), 0);
    if (!record) {
        __sync_fetch_and_add(&counts->lost, 1);
        return XDP_DROP;
    }
    __builtin_memset(record, 0, sizeof(*record));
    record->sequence = frame->sequence;
    record->flow = flow->index;
    record->length = frame->length;
    record->reasons = KILL;
    record->action = CLOSED | REFUSE;
    if (record->length == 48 && data + MESSAGE + 48 <= end) {
        const u64 *words = (const u64 *)(data + MESSAGE);
        for (u32 place = 0; place < 6; place++)
            record->message[place] = words[place];
        order.header = words[0];
        order.instrument = (u32)words[1];
        order.quantity = words[1] >> 32;
        order.price = words[2];
        order.client_order_id = words[3];
        order.session = words[4] >> 32;
        order.side = words[4] >> 48;
        order.flags = words[4] >> 56;
        order.post_only = post_only;
        order.now = now;
    }
    judge(&order, flow->session, record);
    count(counts, record->reasons);
    *judged = 1ull << 32 | frame->sequence;
    ring_submit(record, RING_NO_WAKEUP);
    return XDP_PASS;

stranger:
    __sync_fetch_and_add(&counts->strangers, 1);
    return XDP_DROP;
}

// At an interface.
__attribute__((section("filter"), used)) int filter_frame(struct context *context)
{
    return filter(context, ktime_ns(), 0);
}

// In a trial: before the frame stand the time and, as bits, whether the order is post-only and whether its number counts
// on with each run.
__attribute__((section("trial"), used)) int filter_trial(struct context *context)
{
    u64 *given = (u64 *)(u64)context->data_meta;
    struct frame *frame = (struct frame *)(u64)context->data;

    if ((u8 *)(given + 2) > (u8 *)frame || (u8 *)(frame + 1) > (u8 *)(u64)context->data_end)
        return XDP_DROP;
    if (given[1] & 2)
        frame->sequence++;
    return filter(context, given[0], given[1] & 1);
}
