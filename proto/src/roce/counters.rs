//! What a queue pair counts, under the names that RDMA devices give their counters.

/// Counts since construction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Packets given out to be sent.
    pub sent_pkts: u64,
    /// Packets taken in, good and bad.
    pub rcvd_pkts: u64,
    /// Packets whose check was wrong.
    pub rx_icrc_encapsulated: u64,
    /// Packets that came with the wrong fields, or whose kind does not fit.
    pub malformed: u64,
    /// Requests that had been executed before.
    pub duplicate_request: u64,
    /// Requests ahead of their turn: one before them is missing.
    pub out_of_seq_request: u64,
    /// RNR NAKs received.
    pub rcvd_rnr_err: u64,
    /// RNR NAKs sent: no receive was posted.
    pub send_rnr_err: u64,
    /// NAKs received because the peer misses a packet.
    pub rcvd_seq_err: u64,
    /// Times an acknowledgement or response showed that an RDMA READ's response had been lost.
    pub implied_nak_seq_err: u64,
    /// Packets sent again.
    pub completer_retry_err: u64,
    /// Timeouts.
    pub local_ack_timeout_err: u64,
    /// Acknowledgements of what was never sent, and responses to nothing.
    pub resp_false: u64,
    /// Requests refused: not served, out of turn in their message, of a wrong length.
    pub resp_invalid_request: u64,
    /// Requests refused: key, bounds, access.
    pub resp_remote_access_errors: u64,
    /// Times this end gave up on a peer that did not answer.
    pub retry_exceeded_err: u64,
    /// Times this end gave up on a peer without a receive.
    pub retry_rnr_exceeded_err: u64,
    /// Packets that came marked: congestion on their way (ECN).
    pub np_ecn_marked_roce_packets: u64,
    /// Congestion notifications sent.
    pub np_cnp_sent: u64,
    /// Congestion notifications that slowed this end down.
    pub rp_cnp_handled: u64,
    /// Congestion notifications received with the rate control off.
    pub rp_cnp_ignored: u64,
    /// Requests of this end that the peer has acknowledged.
    pub requests_completed: u64,
    /// Messages of the peer executed.
    pub messages_executed: u64,
}

impl Counters {
    /// The counters by name, in the order in which they are shown, but for `malformed`, which a link counts with its own.
    #[must_use]
    pub const fn rows(&self) -> [(&'static str, u64); 22] {
        [
            ("sent_pkts", self.sent_pkts),
            ("rcvd_pkts", self.rcvd_pkts),
            ("rx_icrc_encapsulated", self.rx_icrc_encapsulated),
            ("duplicate_request", self.duplicate_request),
            ("out_of_seq_request", self.out_of_seq_request),
            ("rcvd_rnr_err", self.rcvd_rnr_err),
            ("send_rnr_err", self.send_rnr_err),
            ("rcvd_seq_err", self.rcvd_seq_err),
            ("implied_nak_seq_err", self.implied_nak_seq_err),
            ("completer_retry_err", self.completer_retry_err),
            ("local_ack_timeout_err", self.local_ack_timeout_err),
            ("resp_false", self.resp_false),
            ("resp_invalid_request", self.resp_invalid_request),
            ("resp_remote_access_errors", self.resp_remote_access_errors),
            ("retry_exceeded_err", self.retry_exceeded_err),
            ("retry_rnr_exceeded_err", self.retry_rnr_exceeded_err),
            ("np_ecn_marked_roce_packets", self.np_ecn_marked_roce_packets),
            ("np_cnp_sent", self.np_cnp_sent),
            ("rp_cnp_handled", self.rp_cnp_handled),
            ("rp_cnp_ignored", self.rp_cnp_ignored),
            ("requests_completed", self.requests_completed),
            ("messages_executed", self.messages_executed),
        ]
    }
}
