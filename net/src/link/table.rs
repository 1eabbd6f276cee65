//! What a config says of a link, as it is written there: one reader for all programs, whose tables take these keys in
//! beside their own (`#[serde(flatten)]`, side by side: within each other, an unknown key could not be told).

use super::keys::read_key;
use super::{LinkConfig, LinkEnd, LtpLinkConfig, RoceLinkConfig, RoceTable, SecondPath, TcpLinkConfig};
use crate::carrier::{CarrierConfig, CarrierKind};
use crate::options::{TcpOptions, UdpOptions};
use crate::xdp::XdpTable;
use proto::ltp::{Config, HeaderForm, Redundancy};
use proto::soup::{Password, SessionName, UserName};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use types::{Duration, SessionId};

/// What a link between gateway and venue says beside a [`LinkTable`].
#[derive(Deserialize, Debug)]
pub struct VenueLinkTable {
    /// Over what.
    pub transport: Transport,
    /// LTP: `full` or `compact`.
    pub header: Option<String>,
    /// LTP: `off`, `paths`, `twice` or `repeat`.
    pub redundancy: Option<String>,
    /// LTP: how long a gap may fill by itself, µs.
    pub reorder_allowance_us: Option<u64>,
    /// LTP over AF_XDP, of the second path.
    pub second_afxdp: Option<XdpTable>,
    /// TCP: who the gateway is.
    pub user: Option<String>,
    /// TCP: its proof.
    pub password: Option<String>,
    /// TCP: socket options, where they are not the tuned ones.
    pub tcp: Option<TcpOptions>,
    /// RoCEv2: addresses and settings.
    pub roce: Option<RoceTable>,
}

/// What every link says, those of order clients too.
#[derive(Deserialize, Clone, Debug)]
pub struct LinkTable {
    /// What carries the datagrams of LTP and RoCEv2; UDP sockets where nothing is said.
    pub carrier: Option<CarrierKind>,
    /// Of AF_XDP.
    pub afxdp: Option<XdpTable>,
    /// Options of the UDP sockets of LTP, where they are not as the kernel has them.
    pub udp: Option<UdpOptions>,
    /// Unacknowledged messages, each way.
    pub window_messages: usize,
    /// Longest silence of this end, ms.
    pub heartbeat_ms: u64,
    /// Silence of the peer that ends a session, ms.
    pub dead_after_ms: u64,
    /// Which key of the file authenticates datagrams.
    pub key_id: Option<u32>,
    /// Where keys are; it stands with `key_id`.
    pub key_file: Option<PathBuf>,
}

/// `transport = "…"`.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// LTP, over UDP sockets or past the kernel.
    Ltp,
    /// Tuned TCP.
    Tcp,
    /// RoCEv2, in user space or by a device, with a table `[….roce]` beside it.
    Roce,
}

impl VenueLinkTable {
    /// The link of a session at this end; `second` is the second way to the peer. A relative `key_file` begins at `base`.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn check(
        &self,
        link: &LinkTable,
        session: SessionId,
        max_message: usize,
        end: LinkEnd,
        second: Option<LinkEnd>,
        base: &Path,
    ) -> Result<LinkConfig, String> {
        link.check_numbers()?;
        check_ends(session, end, second)?;
        match self.transport {
            Transport::Ltp => self.ltp(link, session, max_message, end, second, base),
            Transport::Tcp => self.tcp(link, session, max_message, end, second),
            Transport::Roce => self.roce(link, session, max_message, end, second),
        }
    }

    /// Nothing of TCP's or of RoCEv2's may stand beside another transport.
    fn refuse_tcp(&self) -> Result<(), String> {
        refuse(
            "TCP",
            &[
                ("a table tcp", self.tcp.is_some()),
                ("user and password", self.user.is_some() || self.password.is_some()),
            ],
        )
    }

    fn refuse_roce(&self) -> Result<(), String> {
        refuse("RoCEv2", &[("a table roce", self.roce.is_some())])
    }

    fn refuse_ltp(&self, link: &LinkTable, end: LinkEnd, second: Option<LinkEnd>) -> Result<(), String> {
        refuse(
            "LTP",
            &[
                ("key_id and key_file", link.key_id.is_some() || link.key_file.is_some()),
                ("header", self.header.is_some()),
                ("redundancy", self.redundancy.is_some()),
                ("reorder_allowance_us", self.reorder_allowance_us.is_some()),
                (second_key(end), second.is_some()),
                ("a table udp", link.udp.is_some()),
                ("a table second_afxdp", self.second_afxdp.is_some()),
            ],
        )
    }

    fn ltp(
        &self,
        link: &LinkTable,
        session: SessionId,
        max_message: usize,
        end: LinkEnd,
        second: Option<LinkEnd>,
        base: &Path,
    ) -> Result<LinkConfig, String> {
        self.refuse_tcp()?;
        self.refuse_roce()?;
        let mut ltp = Config::new(session, link.window_messages, max_message);
        if let Some(name) = &self.header {
            ltp.header = HeaderForm::from_name(name).ok_or("header is \"full\" or \"compact\"")?;
        }
        if let Some(name) = &self.redundancy {
            ltp.redundancy =
                Redundancy::from_name(name).ok_or("redundancy is \"off\", \"paths\", \"twice\" or \"repeat\"")?;
        }
        if let Some(allowance) = self.reorder_allowance_us {
            if allowance > REORDER_ALLOWANCE_MAX_US {
                return Err(format!(
                    "reorder_allowance_us = {allowance} must be at most {REORDER_ALLOWANCE_MAX_US}"
                ));
            }
            ltp.reorder_allowance = Duration::from_micros(allowance);
        }
        link.apply(&mut ltp, base)?;
        if second.is_some() != (ltp.redundancy == Redundancy::Paths) {
            let key = second_key(end);
            return Err(format!("redundancy = \"paths\" and {key} stand together"));
        }
        Ok(LinkConfig::Ltp(LtpLinkConfig {
            end,
            ltp,
            carrier: link.carrier(end)?,
            second: SecondPath::check(second, link.carrier, self.second_afxdp.as_ref(), link.udp)?,
        }))
    }

    fn tcp(
        &self,
        link: &LinkTable,
        session: SessionId,
        max_message: usize,
        end: LinkEnd,
        second: Option<LinkEnd>,
    ) -> Result<LinkConfig, String> {
        self.refuse_ltp(link, end, second)?;
        self.refuse_roce()?;
        let carriers = [
            ("carrier", link.carrier.is_some()),
            ("a table afxdp", link.afxdp.is_some()),
        ];
        refuse("LTP and RoCEv2", &carriers)?;
        let text = |text: &Option<String>| {
            let text = text.as_ref().filter(|text| !text.trim().is_empty());
            text.map(|text| text.clone().into_bytes())
        };
        let user = text(&self.user).and_then(|user| UserName::new(&user));
        let password = text(&self.password).and_then(|password| Password::new(&password));
        let (Some(user), Some(password)) = (user, password) else {
            return Err("TCP needs user (1 to 6 characters) and password (1 to 10)".to_owned());
        };
        let name = SessionName::new(session.to_string().as_bytes()).ok_or("its number is no session name")?;
        let mut tcp = TcpLinkConfig::new(end, user, password, name);
        tcp.window = link.window_messages;
        tcp.max_message = max_message;
        tcp.timing.heartbeat = Duration::from_millis(link.heartbeat_ms);
        tcp.timing.dead_after = Duration::from_millis(link.dead_after_ms);
        if let Some(options) = self.tcp {
            options.check()?;
            tcp.tcp = options;
        }
        tcp.check().map_err(|error| error.to_string())?;
        Ok(LinkConfig::Tcp(tcp))
    }

    fn roce(
        &self,
        link: &LinkTable,
        session: SessionId,
        max_message: usize,
        end: LinkEnd,
        second: Option<LinkEnd>,
    ) -> Result<LinkConfig, String> {
        self.refuse_ltp(link, end, second)?;
        self.refuse_tcp()?;
        let table = self
            .roce
            .as_ref()
            .ok_or("transport = \"roce\" wants a table roce with local and peer")?;
        let mut roce = RoceLinkConfig::new(end, table.local, table.peer, link.window_messages, max_message);
        roce.session = session.0.into();
        table.apply(&mut roce)?;
        roce.carrier = CarrierConfig::check(link.carrier, link.afxdp.as_ref(), None, roce.ports_as_end())?;
        roce.heartbeat = Duration::from_millis(link.heartbeat_ms);
        let roce = roce.with_dead_after(Duration::from_millis(link.dead_after_ms));
        roce.check()?;
        Ok(LinkConfig::Roce(roce))
    }
}

impl LinkTable {
    /// Puts all but the window and the carrier into `config`, and checks the whole.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn apply(&self, config: &mut Config, base: &Path) -> Result<(), String> {
        self.check_numbers()?;
        config.heartbeat = Duration::from_millis(self.heartbeat_ms);
        config.dead_after = u32::try_from(self.dead_after_ms / self.heartbeat_ms).unwrap_or(u32::MAX);
        config.key = match (self.key_id, &self.key_file) {
            (Some(id), Some(file)) => Some(read_key(&base.join(file), id)?),
            (None, None) => None,
            _ => return Err("key_id and key_file stand together".to_owned()),
        };
        config.check().map_err(|error| error.to_string())
    }

    /// The rules of the window and of the heartbeat, for every transport.
    fn check_numbers(&self) -> Result<(), String> {
        let window = self.window_messages;
        if !(1..=WINDOW_MAX_MESSAGES).contains(&window) {
            return Err(format!(
                "window_messages = {window} must be from 1 to {WINDOW_MAX_MESSAGES}"
            ));
        }
        let (heartbeat, dead_after) = (self.heartbeat_ms, self.dead_after_ms);
        if !(1..=HEARTBEAT_MAX_MS).contains(&heartbeat) {
            return Err(format!(
                "heartbeat_ms = {heartbeat} must be from 1 to {HEARTBEAT_MAX_MS}"
            ));
        }
        let least = DEAD_AFTER_HEARTBEATS_MIN * heartbeat;
        if !(least..=DEAD_AFTER_MAX_MS).contains(&dead_after) {
            return Err(format!(
                "dead_after_ms = {dead_after} must be at least {DEAD_AFTER_HEARTBEATS_MIN} times heartbeat_ms \
                 ({least}), and at most {DEAD_AFTER_MAX_MS}"
            ));
        }
        Ok(())
    }

    /// What carries the datagrams at this end.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn carrier(&self, end: LinkEnd) -> Result<CarrierConfig, String> {
        check_address(first_key(end), end)?;
        CarrierConfig::check(self.carrier, self.afxdp.as_ref(), self.udp, end)
    }
}

/// Largest `window_messages`, whatever the transport.
const WINDOW_MAX_MESSAGES: usize = Config::WINDOW_MAX;
/// Longest `heartbeat_ms`.
const HEARTBEAT_MAX_MS: u64 = 60_000;
const _: () = assert!(Duration::from_millis(HEARTBEAT_MAX_MS).0 == Config::HEARTBEAT_MAX.0);
/// `dead_after_ms` is at least so many times `heartbeat_ms`: one heartbeat may be lost and the next one late.
const DEAD_AFTER_HEARTBEATS_MIN: u64 = 3;
/// Longest `dead_after_ms`.
const DEAD_AFTER_MAX_MS: u64 = 600_000;
const _: () = assert!(DEAD_AFTER_HEARTBEATS_MIN * HEARTBEAT_MAX_MS <= DEAD_AFTER_MAX_MS);
/// Longest `reorder_allowance_us`.
const REORDER_ALLOWANCE_MAX_US: u64 = 1_000_000;

/// What stands in a config and is another transport's.
fn refuse(transport: &str, keys: &[(&str, bool)]) -> Result<(), String> {
    match keys.iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err(format!("for {transport} alone: {key}")),
        None => Ok(()),
    }
}

/// What no link can be built with: a session without a number, an address that is nobody's, one way given as two.
fn check_ends(session: SessionId, end: LinkEnd, second: Option<LinkEnd>) -> Result<(), String> {
    if session.0 == 0 {
        return Err("session must be above 0".to_owned());
    }
    check_address(first_key(end), end)?;
    let Some(second) = second else { return Ok(()) };
    check_address(second_key(end), second)?;
    let (one, other) = (address(end), address(second));
    let is_any = [one, other].iter().any(|address| address.ip().is_unspecified());
    if one.port() == other.port() && one.port() != 0 && (one.ip() == other.ip() || is_any) {
        let (first, second) = (first_key(end), second_key(end));
        return Err(format!("{second} must be another address than {first}"));
    }
    Ok(())
}

/// An end is at, and calls, one host.
fn check_address(key: &str, end: LinkEnd) -> Result<(), String> {
    let (address, is_peer) = (address(end), matches!(end, LinkEnd::Connect { .. }));
    let ip = address.ip();
    let is_broadcast = ip == IpAddr::from(Ipv4Addr::BROADCAST);
    if ip.is_multicast() || is_broadcast || (is_peer && ip.is_unspecified()) {
        return Err(format!("{key} = {address} must be the address of one host"));
    }
    if is_peer && address.port() == 0 {
        return Err(format!("{key} must have a port above 0"));
    }
    Ok(())
}

/// The address that a config gives for an end.
const fn address(end: LinkEnd) -> SocketAddr {
    match end {
        LinkEnd::Connect { peer, .. } => peer,
        LinkEnd::Listen { local } => local,
    }
}

/// The key that this end has in a config.
const fn first_key(end: LinkEnd) -> &'static str {
    match end {
        LinkEnd::Connect { .. } => "peer",
        LinkEnd::Listen { .. } => "listen",
    }
}

/// The key that its second path has there.
const fn second_key(end: LinkEnd) -> &'static str {
    match end {
        LinkEnd::Connect { .. } => "second_peer",
        LinkEnd::Listen { .. } => "second_listen",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::RoceOperation;
    use crate::options::QuickAck;

    const LTP: &str = "transport = \"ltp\"\nwindow_messages = 64\nheartbeat_ms = 10\ndead_after_ms = 500\n";
    const TCP: &str = "transport = \"tcp\"\nwindow_messages = 64\nheartbeat_ms = 10\ndead_after_ms = 500\n\
        user = \"gate1\"\npassword = \"secret\"\n";

    const ROCE: &str = "transport = \"roce\"\nwindow_messages = 64\nheartbeat_ms = 10\ndead_after_ms = 500\n";

    fn table_roce(more: &str) -> String {
        format!("[roce]\nlocal = \"10.0.0.1\"\npeer = \"10.0.0.2\"\n{more}")
    }

    /// As a program has it.
    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Table {
        #[serde(flatten)]
        link: LinkTable,
        #[serde(flatten)]
        venue: VenueLinkTable,
    }

    fn peer() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 7201))
    }

    fn read(text: &str, more: &str, second: Option<SocketAddr>) -> Result<LinkConfig, String> {
        let table: Table = toml::from_str(&format!("{text}{more}")).map_err(|error| error.to_string())?;
        let to = |peer| LinkEnd::Connect { peer, local: None };
        let (end, second) = (to(peer()), second.map(to));
        table
            .venue
            .check(&table.link, SessionId(3), 64, end, second, Path::new("/nowhere"))
    }

    fn ltp(more: &str) -> Config {
        match read(LTP, more, None) {
            Ok(LinkConfig::Ltp(link)) => link.ltp,
            other => panic!("{other:?}"),
        }
    }

    fn tcp(more: &str) -> TcpLinkConfig {
        match read(TCP, more, None) {
            Ok(LinkConfig::Tcp(link)) => link,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_absent_stays_as_it_is_and_what_is_given_is_taken() {
        let plain = Config {
            heartbeat: Duration::from_millis(10),
            dead_after: 50,
            ..Config::new(SessionId(3), 64, 64)
        };
        assert_eq!(ltp(""), plain);
        let given = Config {
            header: HeaderForm::Compact,
            redundancy: Redundancy::Repeat,
            reorder_allowance: Duration::from_micros(20),
            ..plain
        };
        let more = "header = \"compact\"\nredundancy = \"repeat\"\nreorder_allowance_us = 20";
        assert_eq!(ltp(more), given);
        let link = tcp("");
        assert_eq!((link.window, link.max_message, link.tcp), (64, 64, TcpOptions::tuned()));
        assert_eq!(link.timing.dead_after, Duration::from_millis(500));
        assert!(matches!(
            read(LTP, "redundancy = \"paths\"", Some(([127, 0, 0, 1], 7202).into())),
            Ok(LinkConfig::Ltp(LtpLinkConfig { second: Some(_), .. }))
        ));
    }

    #[test]
    fn each_setting_of_rocev2_is_taken_and_the_queue_pair_is_as_patient_as_the_link() {
        let roce = |more: &str| match read(ROCE, &table_roce(more), None) {
            Ok(LinkConfig::Roce(link)) => link,
            other => panic!("{other:?}"),
        };
        let plain = roce("");
        assert_eq!((plain.session, plain.window, plain.max_message), (3, 64, 64));
        assert_eq!((plain.operation, plain.dscp), (RoceOperation::Write, 0));
        assert_eq!((plain.queue_pair.mtu, plain.queue_pair.rate), (1_024, None));
        assert_eq!(plain.heartbeat, Duration::from_millis(10));
        assert_eq!(plain.dead_after, Duration::from_millis(500));
        let given = roce("operation = \"send\"\nmtu_bytes = 4096\ndscp = 26\nrate_control_line_mbit_s = 10_000");
        assert_eq!((given.operation, given.dscp), (RoceOperation::Send, 26));
        let line = given.queue_pair.rate.map(|rate| rate.line);
        assert_eq!((given.queue_pair.mtu, line), (4_096, Some(1_250_000_000)));
        for dead_after in ["30", "500", "15_000", "600_000"] {
            let text = ROCE.replace("500", dead_after);
            let Ok(LinkConfig::Roce(link)) = read(&text, &table_roce(""), None) else {
                panic!("{dead_after}");
            };
            assert!(link.queue_pair.patience() >= link.dead_after, "{dead_after}");
        }
        let device = read(ROCE, &table_roce("device = \"mlx5_0\"\npriority = 3"), None);
        if cfg!(feature = "verbs") {
            let Ok(LinkConfig::Roce(link)) = device else {
                panic!("{device:?}");
            };
            assert_eq!(link.device.map(|name| name.to_string()), Some("mlx5_0".to_owned()));
            assert_eq!(link.priority, 3);
            let error = read(
                ROCE,
                &table_roce("device = \"mlx5_0\"\nrate_control_line_mbit_s = 1"),
                None,
            )
            .unwrap_err();
            assert!(error.contains("a device has its own rate control"), "{error}");
        } else {
            let error = device.unwrap_err();
            assert!(error.contains("--features verbs"), "{error}");
        }
        let error = read(&ROCE.replace("64", "65_537"), &table_roce(""), None).unwrap_err();
        assert!(
            error.contains("window_messages is out of range: it must be from 1 to 65536"),
            "{error}"
        );
    }

    #[test]
    fn each_socket_option_of_tcp_is_taken_and_the_others_stay_tuned() {
        let all = TcpOptions {
            no_delay: false,
            quick_ack: QuickAck::Rearmed,
            rto_min_us: Some(200_000),
            user_timeout_ms: Some(0),
            notsent_lowat_bytes: Some(1),
            busy_poll_us: Some(50),
            prefer_busy_poll: true,
            incoming_cpu: Some(3),
            send_buffer_bytes: Some(4_096),
            receive_buffer_bytes: Some(8_192),
        };
        let text = "[tcp]\nno_delay = false\nquick_ack = \"rearmed\"\nrto_min_us = 200_000\nuser_timeout_ms = 0\n\
            notsent_lowat_bytes = 1\nbusy_poll_us = 50\nprefer_busy_poll = true\nincoming_cpu = 3\n\
            send_buffer_bytes = 4096\nreceive_buffer_bytes = 8192\n";
        assert_eq!(tcp(text).tcp, all);
        let tuned = TcpOptions::tuned();
        assert_eq!(tcp("[tcp]\n").tcp, tuned);
        let one = TcpOptions {
            quick_ack: QuickAck::Off,
            ..tuned
        };
        assert_eq!(tcp("[tcp]\nquick_ack = \"off\"\n").tcp, one);
    }

    #[test]
    fn options_of_udp_are_taken_for_both_paths() {
        let second = Some(([127, 0, 0, 1], 7202).into());
        let more = "redundancy = \"paths\"\n[udp]\nsend_buffer_bytes = 4096\nreceive_buffer_bytes = 8192\nbusy_poll_us = 50\n\
            prefer_busy_poll = true\nincoming_cpu = 3\n";
        let Ok(LinkConfig::Ltp(link)) = read(LTP, more, second) else {
            panic!("LTP");
        };
        let wanted = UdpOptions {
            busy_poll_us: Some(50),
            prefer_busy_poll: true,
            incoming_cpu: Some(3),
            send_buffer_bytes: Some(4_096),
            receive_buffer_bytes: Some(8_192),
        };
        let second = link.second.map(|second| second.carrier);
        for carrier in [Some(link.carrier), second] {
            assert!(matches!(carrier, Some(CarrierConfig::Udp(options)) if options == wanted));
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_name() {
        for (text, more, part) in [
            (LTP, "header = \"short\"", "header is"),
            (LTP, "redundancy = \"thrice\"", "redundancy is"),
            (LTP, "redundancy = \"paths\"", "and second_peer stand together"),
            (LTP, "key_id = 1", "key_id and key_file stand together"),
            (LTP, "key_id = 1\nkey_file = \"keys\"", "key file /nowhere/keys: "),
            (LTP, "[second_afxdp]\ninterface = \"lo\"", "missing field"),
            (LTP, "windo_messages = 7", "unknown field `windo_messages`"),
            (LTP, "[tcp]\nno_delay = true", "for TCP alone: a table tcp"),
            (
                LTP,
                "[udp]\nreceive_buffer_bytes = 0",
                "udp: receive_buffer_bytes = 0 must be from 1",
            ),
            (LTP, "[udp]\nsend_bufer_bytes = 1", "send_bufer_bytes"),
            (
                LTP,
                "carrier = \"afxdp\"\n[udp]\nsend_buffer_bytes = 1\n[afxdp]\ninterface = \"lo\"\nqueue = 0\nmode = \"copy\"\n\
                 neighbour = \"kernel\"\nframes = 64\nfallback = false",
                "a table udp wants carrier = \"udp\", or fallback = true",
            ),
            (LTP, "user = \"gate1\"", "for TCP alone: user and password"),
            (LTP, "password = \"secret\"", "for TCP alone: user and password"),
            (LTP, "reorder_allowance_us = 1_000_001", "must be at most 1000000"),
            (TCP, "key_id = 1", "for LTP alone: key_id"),
            (TCP, "header = \"full\"", "for LTP alone: header"),
            (TCP, "redundancy = \"off\"", "for LTP alone: redundancy"),
            (TCP, "reorder_allowance_us = 0", "for LTP alone: reorder_allowance_us"),
            (TCP, "[udp]\nsend_buffer_bytes = 1", "for LTP alone: a table udp"),
            (ROCE, "[udp]\nsend_buffer_bytes = 1", "for LTP alone: a table udp"),
            (TCP, "carrier = \"udp\"", "for LTP and RoCEv2 alone: carrier"),
            (TCP, &table_roce(""), "for RoCEv2 alone: a table roce"),
            (LTP, &table_roce(""), "for RoCEv2 alone: a table roce"),
            (ROCE, "", "wants a table roce with local and peer"),
            (ROCE, "user = \"gate1\"", "for TCP alone: user and password"),
            (ROCE, "key_id = 1", "for LTP alone: key_id"),
            (ROCE, "redundancy = \"twice\"", "for LTP alone: redundancy"),
            (ROCE, "[tcp]\nno_delay = true", "for TCP alone: a table tcp"),
            (ROCE, "[roce]\nlocal = \"10.0.0.1\"", "missing field `peer`"),
            (ROCE, &table_roce("operation = \"read\""), "unknown variant `read`"),
            (ROCE, &table_roce("operatoin = \"send\""), "operatoin"),
            (ROCE, &table_roce("dscp = 64"), "roce: dscp = 64 must be at most 63"),
            (
                ROCE,
                &table_roce("priority = 8"),
                "roce: priority = 8 must be at most 7",
            ),
            (
                ROCE,
                &table_roce("device = \"a/b\""),
                "a name of 1 to 63 characters, as `rdma link` shows it",
            ),
            (ROCE, &table_roce("meeting = \"udp\""), "unknown variant `udp`"),
            (
                ROCE,
                &table_roce("meeting = \"rdma_cm\""),
                "meeting = \"rdma_cm\" wants a device at both ends",
            ),
            (
                ROCE,
                &table_roce("meeting = \"rdma_cm\"\ndevice = \"mlx5_0\""),
                "peer is 127.0.0.1, and wanted is 10.0.0.2",
            ),
            (
                ROCE,
                &table_roce("mtu_bytes = 1500"),
                "mtu_bytes must be 256, 512, 1024, 2048 or 4096",
            ),
            (
                ROCE,
                &table_roce("rate_control_line_mbit_s = 0"),
                "roce: rate_control_line_mbit_s = 0 must be from 1 to 800000",
            ),
            (
                ROCE,
                "[roce]\nlocal = \"10.0.0.1\"\npeer = \"fd00::2\"",
                "must be addresses of two hosts, of one family",
            ),
            (
                ROCE,
                "[roce]\nlocal = \"10.0.0.1\"\npeer = \"10.0.0.1\"",
                "must be addresses of two hosts, of one family",
            ),
            (
                TCP,
                "[tcp]\nrto_min_us = 200_001",
                "tcp: rto_min_us = 200001 must be from 1 to 200000",
            ),
            (TCP, "[tcp]\nrto_min_us = 0", "tcp: rto_min_us"),
            (TCP, "[tcp]\nuser_timeout_ms = 3_000_000_000", "tcp: user_timeout_ms"),
            (
                TCP,
                "[tcp]\nnotsent_lowat_bytes = 3_000_000_000",
                "tcp: notsent_lowat_bytes",
            ),
            (TCP, "[tcp]\nbusy_poll_us = 3_000_000_000", "tcp: busy_poll_us"),
            (TCP, "[tcp]\nsend_buffer_bytes = 0", "tcp: send_buffer_bytes"),
            (
                TCP,
                "[tcp]\nreceive_buffer_bytes = 1_500_000_000",
                "tcp: receive_buffer_bytes",
            ),
            (TCP, "[tcp]\nquick_ack = \"always\"", "rearmed"),
            (TCP, "[tcp]\nno_dealy = true", "no_dealy"),
        ] {
            let error = read(text, more, None).unwrap_err();
            assert!(error.contains(part), "{more}: {error}");
        }
        let second = SocketAddr::from(([127, 0, 0, 1], 7202));
        for text in [TCP, ROCE] {
            let error = read(text, "", Some(second)).unwrap_err();
            assert_eq!(error, "for LTP alone: second_peer");
        }
        let error = read(&TCP.replace("gate1", "a name too long"), "", None).unwrap_err();
        assert!(error.starts_with("TCP needs user"), "{error}");
    }

    #[test]
    fn a_peer_is_dead_after_three_heartbeats_at_the_earliest_over_either_transport() {
        for text in [LTP, TCP] {
            let times = |heartbeat: &str, dead_after: &str| {
                let text = text.replace("heartbeat_ms = 10", &format!("heartbeat_ms = {heartbeat}"));
                let text = text.replace("dead_after_ms = 500", &format!("dead_after_ms = {dead_after}"));
                read(&text, "", None).map(|_| ())
            };
            for (heartbeat, dead_after) in [("1", "3"), ("100", "300"), ("60_000", "600_000")] {
                assert_eq!(times(heartbeat, dead_after), Ok(()));
            }
            for (heartbeat, dead_after, part) in [
                (
                    "100",
                    "100",
                    "dead_after_ms = 100 must be at least 3 times heartbeat_ms (300)",
                ),
                (
                    "100",
                    "299",
                    "dead_after_ms = 299 must be at least 3 times heartbeat_ms (300)",
                ),
                ("1000", "10", "at least 3 times heartbeat_ms"),
                ("10", "600_001", "at most 600000"),
                ("10", "9223372036854775807", "at most 600000"),
                ("0", "500", "heartbeat_ms = 0 must be from 1 to 60000"),
                ("60_001", "600_000", "heartbeat_ms = 60001"),
                ("9223372036854775807", "500", "heartbeat_ms = 9223372036854775807"),
            ] {
                let error = times(heartbeat, dead_after).unwrap_err();
                assert!(error.contains(part), "{heartbeat}, {dead_after}: {error}");
            }
        }
    }

    #[test]
    fn a_link_that_could_not_be_built_is_refused_where_its_config_is_read() {
        let paths = "redundancy = \"paths\"";
        let error = read(LTP, paths, Some(peer())).unwrap_err();
        assert_eq!(error, "second_peer must be another address than peer");
        let error = read(LTP, paths, Some(([127, 0, 0, 1], 0).into())).unwrap_err();
        assert_eq!(error, "second_peer must have a port above 0");
        let to = |port| LinkEnd::Connect {
            peer: ([127, 0, 0, 1], port).into(),
            local: None,
        };
        for text in [LTP, TCP] {
            let table: Table = toml::from_str(text).unwrap();
            let check = |session, port| {
                let nowhere = Path::new("/nowhere");
                let link = table
                    .venue
                    .check(&table.link, SessionId(session), 64, to(port), None, nowhere);
                link.map(|_| ())
            };
            assert_eq!(check(3, 7201), Ok(()));
            assert_eq!(check(0, 7201).unwrap_err(), "session must be above 0");
            assert_eq!(check(3, 0).unwrap_err(), "peer must have a port above 0");
        }
        let ltp = |end: LinkEnd, second: Option<LinkEnd>| {
            let paths = if second.is_some() { "redundancy = \"paths\"" } else { "" };
            let table: Table = toml::from_str(&format!("{LTP}{paths}")).unwrap();
            let nowhere = Path::new("/nowhere");
            let link = table.venue.check(&table.link, SessionId(3), 64, end, second, nowhere);
            link.map(|_| ())
        };
        let connect = |peer: &str| LinkEnd::Connect {
            peer: peer.parse().unwrap(),
            local: None,
        };
        let listen = |local: &str| LinkEnd::Listen {
            local: local.parse().unwrap(),
        };
        for nobody in [
            "0.0.0.0:7201",
            "[::]:7201",
            "224.0.0.1:7201",
            "255.255.255.255:7201",
            "[ff02::1]:7201",
        ] {
            let error = ltp(connect(nobody), None).unwrap_err();
            assert_eq!(error, format!("peer = {nobody} must be the address of one host"));
            let error = ltp(connect("10.0.0.1:7201"), Some(connect(nobody))).unwrap_err();
            assert!(error.starts_with("second_peer = "), "{error}");
            // All addresses of a host are a place to listen.
            let is_any = nobody.starts_with('0') || nobody.starts_with("[::]");
            assert_eq!(ltp(listen(nobody), None).is_ok(), is_any, "{nobody}");
        }
        for (second, is_another) in [
            ("10.0.0.1:7201", false),
            ("0.0.0.0:7201", false),
            ("10.0.0.1:7202", true),
            ("10.0.0.2:7201", true),
        ] {
            let checked = ltp(listen("10.0.0.1:7201"), Some(listen(second)));
            let wrong = "second_listen must be another address than listen".to_owned();
            assert_eq!(checked, if is_another { Ok(()) } else { Err(wrong) }, "{second}");
        }
        for (good, empty) in [("gate1", ""), ("secret", ""), ("secret", "  ")] {
            let error = read(&TCP.replace(good, empty), "", None).unwrap_err();
            assert!(error.starts_with("TCP needs user"), "{error}");
        }
        let error = read(&TCP.replace("window_messages = 64", "window_messages = 0"), "", None).unwrap_err();
        assert!(
            error.contains("window_messages = 0 must be from 1 to 1048576"),
            "{error}"
        );
    }
}
