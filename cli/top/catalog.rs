//! The counters by name: what each is about, and how wide the card counts.

/// What a counter is about, in the order of the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Group {
    Pause,
    Discards,
    Ecn,
    Cnp,
    Retransmits,
    Sequence,
    Rnr,
    OutOfBuffer,
    Errors,
    Traffic,
}

impl Group {
    pub(super) const ALL: [Self; 10] = [
        Self::Pause,
        Self::Discards,
        Self::Ecn,
        Self::Cnp,
        Self::Retransmits,
        Self::Sequence,
        Self::Rnr,
        Self::OutOfBuffer,
        Self::Errors,
        Self::Traffic,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Pause => "pause frames",
            Self::Discards => "discards",
            Self::Ecn => "ECN marks",
            Self::Cnp => "CNPs",
            Self::Retransmits => "retransmits",
            Self::Sequence => "sequence errors",
            Self::Rnr => "RNR",
            Self::OutOfBuffer => "out of buffer",
            Self::Errors => "errors",
            Self::Traffic => "traffic",
        }
    }
}

/// Where a counter is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A file in `hw_counters` of the port.
    Port,
    /// The driver of the network interface, as `ethtool -S` asks it.
    Interface,
}

/// One counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Counter {
    pub(super) name: String,
    pub(super) group: Group,
    pub(super) source: Source,
    /// After so many bits it begins again at 0.
    pub(super) bits: u32,
}

/// Priorities of Ethernet (802.1Q).
pub(super) const PRIORITIES: usize = 8;

/// Every counter that is known, in the order of the groups.
pub(super) fn all() -> Vec<Counter> {
    let mut counters = Vec::new();
    for group in Group::ALL {
        let port = PORT.iter().filter(|(_, of, _)| *of == group);
        counters.extend(port.map(|&(name, group, bits)| Counter {
            name: name.to_owned(),
            group,
            source: Source::Port,
            bits,
        }));
        let of_group = |&(_, of): &&(&str, Group)| *of == group;
        let of_priorities = (0..PRIORITIES).flat_map(|priority| {
            let names = PRIORITY.iter().filter(of_group);
            names.map(move |(name, _)| name.replace('N', &priority.to_string()))
        });
        let of_interface = INTERFACE.iter().filter(of_group).map(|(name, _)| (*name).to_owned());
        counters.extend(of_priorities.chain(of_interface).map(|name| Counter {
            name,
            group,
            source: Source::Interface,
            bits: 64,
        }));
    }
    counters
}

/// In `hw_counters`: name, group, bits. The queue counters of mlx5 have 32 bits; its congestion counters, and all of rxe's, 64.
/// Both drivers have `duplicate_request`; the narrower width is right for both until the first 2³² of them.
const PORT: [(&str, Group, u32); 31] = [
    ("np_ecn_marked_roce_packets", Group::Ecn, 64),
    ("np_cnp_sent", Group::Cnp, 64),
    ("rp_cnp_handled", Group::Cnp, 64),
    ("rp_cnp_ignored", Group::Cnp, 64),
    ("local_ack_timeout_err", Group::Retransmits, 32),
    ("roce_adp_retrans", Group::Retransmits, 32),
    ("roce_adp_retrans_to", Group::Retransmits, 32),
    ("roce_slow_restart", Group::Retransmits, 32),
    ("completer_retry_err", Group::Retransmits, 64),
    ("out_of_sequence", Group::Sequence, 32),
    ("packet_seq_err", Group::Sequence, 32),
    ("implied_nak_seq_err", Group::Sequence, 32),
    ("duplicate_request", Group::Sequence, 32),
    ("out_of_seq_request", Group::Sequence, 64),
    ("rcvd_seq_err", Group::Sequence, 64),
    ("rnr_nak_retry_err", Group::Rnr, 32),
    ("rcvd_rnr_err", Group::Rnr, 64),
    ("send_rnr_err", Group::Rnr, 64),
    ("out_of_buffer", Group::OutOfBuffer, 32),
    ("req_cqe_error", Group::Errors, 32),
    ("resp_cqe_error", Group::Errors, 32),
    ("rx_icrc_encapsulated", Group::Errors, 64),
    ("retry_exceeded_err", Group::Errors, 64),
    ("retry_rnr_exceeded_err", Group::Errors, 64),
    ("send_err", Group::Errors, 64),
    ("link_downed", Group::Errors, 64),
    ("sent_pkts", Group::Traffic, 64),
    ("rcvd_pkts", Group::Traffic, 64),
    ("rdma_sends", Group::Traffic, 64),
    ("rdma_recvs", Group::Traffic, 64),
    ("ack_deferred", Group::Traffic, 64),
];

/// Of the interface, once for each priority N.
const PRIORITY: [(&str, Group); 7] = [
    ("rx_prioN_pause", Group::Pause),
    ("rx_prioN_pause_duration", Group::Pause),
    ("tx_prioN_pause", Group::Pause),
    ("tx_prioN_pause_duration", Group::Pause),
    ("rx_prioN_discards", Group::Discards),
    ("rx_prioN_cong_discard", Group::Discards),
    ("rx_prioN_marked", Group::Ecn),
];

/// Of the interface.
const INTERFACE: [(&str, Group); 4] = [
    ("tx_pause_storm_warning_events", Group::Pause),
    ("tx_pause_storm_error_events", Group::Pause),
    ("rx_discards_phy", Group::Discards),
    ("tx_discards_phy", Group::Discards),
];
