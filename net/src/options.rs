//! Socket options: what is wanted, what the kernel gave, side by side in one log line.
//!
//! Every option here is an `int` to the kernel, so one table and two functions serve all. An option that the kernel does
//! not know, or refuses, never fails the connection: the read-back says so, and whoever tunes reads it.

use serde::Deserialize;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// TCP_RTO_MIN_US: the shortest retransmission timeout of this socket, in microseconds (Linux 6.11, `linux/tcp.h`).
const TCP_RTO_MIN_US: libc::c_int = 45;

/// The kernel's own shortest retransmission timeout, µs; it takes none above.
const RTO_MIN_DEFAULT_US: u32 = 200_000;

/// Options of a TCP connection. The default asks for nothing: an untuned socket as the kernel makes it. In a config they
/// are a table `[….tcp]`, and what it leaves out is as [`tuned`](Self::tuned) has it.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(default = "TcpOptions::tuned", deny_unknown_fields)]
pub struct TcpOptions {
    /// TCP_NODELAY: send at once instead of waiting for the acknowledgement of what is in flight (Nagle).
    pub no_delay: bool,
    /// TCP_QUICKACK: acknowledge at once.
    pub quick_ack: QuickAck,
    /// TCP_RTO_MIN_US, µs. The kernel's default is 200,000, which is what a lost last segment costs. It takes nothing
    /// below two ticks of its clock (8,000 at 250 Hz), so what it refuses is doubled until it takes it.
    pub rto_min_us: Option<u32>,
    /// TCP_USER_TIMEOUT, ms: how long sent data may stay unacknowledged before the connection fails.
    pub user_timeout_ms: Option<u32>,
    /// TCP_NOTSENT_LOWAT, bytes: the socket stops being writable with this much unsent, so that a slow peer is noticed
    /// here and not behind megabytes of kernel buffer.
    pub notsent_lowat_bytes: Option<u32>,
    /// SO_BUSY_POLL, µs: spin on the device's queue in a blocking receive. Helps only on a real card.
    pub busy_poll_us: Option<u32>,
    /// SO_PREFER_BUSY_POLL: let busy polling hold off the card's interrupts.
    pub prefer_busy_poll: bool,
    /// SO_INCOMING_CPU: the CPU whose receive queue this socket belongs to.
    pub incoming_cpu: Option<u16>,
    /// SO_SNDBUF, bytes. The kernel doubles it for its own bookkeeping and reads back the double.
    pub send_buffer_bytes: Option<u32>,
    /// SO_RCVBUF, bytes. Doubled as above.
    pub receive_buffer_bytes: Option<u32>,
}

/// `quick_ack = "…"`. The kernel clears TCP_QUICKACK by itself, once it takes the connection for one of questions and answers.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "lowercase")]
pub enum QuickAck {
    /// As the kernel sees fit.
    #[default]
    Off,
    /// From the beginning of a connection on, until the kernel clears it.
    Once,
    /// And again after each receive: a system call each, which pays only where the peer waits for acknowledgements.
    Rearmed,
}

/// Options of a UDP socket. The default asks for nothing. In a config they are a table `[….udp]`.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct UdpOptions {
    /// SO_BUSY_POLL, µs.
    pub busy_poll_us: Option<u32>,
    /// SO_PREFER_BUSY_POLL.
    pub prefer_busy_poll: bool,
    /// SO_INCOMING_CPU.
    pub incoming_cpu: Option<u16>,
    /// SO_SNDBUF, bytes (read back doubled). net.core.wmem_max caps it.
    pub send_buffer_bytes: Option<u32>,
    /// SO_RCVBUF, bytes (read back doubled). net.core.rmem_max caps it.
    pub receive_buffer_bytes: Option<u32>,
}

/// What the kernel gave for each option. Prints as one line:
/// `no_delay=1 quick_ack=1 rto_min_us=8000 (wanted 2000) busy_poll_us=refused (wanted 50) …`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readback {
    rows: [Option<Row>; ROWS_MAX],
}

/// One option of a [`Readback`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The option, as the config names it.
    pub name: &'static str,
    /// The value asked for; `None` when nothing was.
    pub wanted: Option<u32>,
    /// The value read back; `None` when the kernel does not know the option.
    pub got: Option<u32>,
}

/// Options of the longest table below.
const ROWS_MAX: usize = 10;

/// What an `int` holds.
const INT_MAX: u32 = i32::MAX.cast_unsigned();

/// Length of every option's value.
const INT_LENGTH: libc::socklen_t = 4;
const _: () = assert!(size_of::<libc::c_int>() == 4);

/// An option to set and read: name, level, number, value.
type Wanted = (&'static str, libc::c_int, libc::c_int, Option<u32>);

impl TcpOptions {
    /// What an order session wants everywhere: no Nagle, quick acknowledgements while the connection is young, the
    /// shortest retransmission timeout, a dead peer noticed in 10 s, a slow one at 16 KiB.
    #[must_use]
    pub const fn tuned() -> Self {
        Self {
            no_delay: true,
            quick_ack: QuickAck::Once,
            rto_min_us: Some(2_000),
            user_timeout_ms: Some(10_000),
            notsent_lowat_bytes: Some(16 * 1024),
            busy_poll_us: None,
            prefer_busy_poll: false,
            incoming_cpu: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }

    /// Looks for what no kernel takes.
    ///
    /// # Errors
    /// The option, by its name in a config, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        let in_range = |name, value, least, most| in_range("tcp", name, value, least, most);
        in_range("rto_min_us", self.rto_min_us, 1, RTO_MIN_DEFAULT_US)?;
        in_range("user_timeout_ms", self.user_timeout_ms, 0, INT_MAX)?;
        in_range("notsent_lowat_bytes", self.notsent_lowat_bytes, 0, INT_MAX)?;
        in_range("busy_poll_us", self.busy_poll_us, 0, INT_MAX)?;
        // The kernel doubles them.
        in_range("send_buffer_bytes", self.send_buffer_bytes, 1, INT_MAX / 2)?;
        in_range("receive_buffer_bytes", self.receive_buffer_bytes, 1, INT_MAX / 2)
    }

    /// Sets every option asked for and reads all of them back.
    pub(crate) fn apply(&self, socket: BorrowedFd<'_>) -> Readback {
        apply(
            socket,
            &[
                ("no_delay", libc::IPPROTO_TCP, libc::TCP_NODELAY, flag(self.no_delay)),
                (
                    "quick_ack",
                    libc::IPPROTO_TCP,
                    libc::TCP_QUICKACK,
                    flag(self.quick_ack != QuickAck::Off),
                ),
                ("rto_min_us", libc::IPPROTO_TCP, TCP_RTO_MIN_US, self.rto_min_us),
                (
                    "user_timeout_ms",
                    libc::IPPROTO_TCP,
                    libc::TCP_USER_TIMEOUT,
                    self.user_timeout_ms,
                ),
                (
                    "notsent_lowat_bytes",
                    libc::IPPROTO_TCP,
                    libc::TCP_NOTSENT_LOWAT,
                    self.notsent_lowat_bytes,
                ),
                ("busy_poll_us", libc::SOL_SOCKET, libc::SO_BUSY_POLL, self.busy_poll_us),
                (
                    "prefer_busy_poll",
                    libc::SOL_SOCKET,
                    libc::SO_PREFER_BUSY_POLL,
                    flag(self.prefer_busy_poll),
                ),
                (
                    "incoming_cpu",
                    libc::SOL_SOCKET,
                    libc::SO_INCOMING_CPU,
                    self.incoming_cpu.map(u32::from),
                ),
                (
                    "send_buffer_bytes",
                    libc::SOL_SOCKET,
                    libc::SO_SNDBUF,
                    self.send_buffer_bytes,
                ),
                (
                    "receive_buffer_bytes",
                    libc::SOL_SOCKET,
                    libc::SO_RCVBUF,
                    self.receive_buffer_bytes,
                ),
            ],
        )
    }

    /// Sets the buffers alone: the window scale is agreed in the handshake, so they come before `connect` and `listen`.
    pub(crate) fn apply_buffers(&self, socket: BorrowedFd<'_>) {
        for (option, wanted) in [
            (libc::SO_SNDBUF, self.send_buffer_bytes),
            (libc::SO_RCVBUF, self.receive_buffer_bytes),
        ] {
            if let Some(value) = wanted {
                // A refusal shows in the read-back of the connection.
                let _ = set(socket, libc::SOL_SOCKET, option, value);
            }
        }
    }
}

impl UdpOptions {
    /// Looks for what no kernel takes.
    ///
    /// # Errors
    /// The option, by its name in a config, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        in_range("udp", "busy_poll_us", self.busy_poll_us, 0, INT_MAX)?;
        // The kernel doubles them.
        in_range("udp", "send_buffer_bytes", self.send_buffer_bytes, 1, INT_MAX / 2)?;
        in_range("udp", "receive_buffer_bytes", self.receive_buffer_bytes, 1, INT_MAX / 2)
    }

    /// Sets every option asked for and reads all of them back.
    pub(crate) fn apply(&self, socket: BorrowedFd<'_>) -> Readback {
        apply(
            socket,
            &[
                ("busy_poll_us", libc::SOL_SOCKET, libc::SO_BUSY_POLL, self.busy_poll_us),
                (
                    "prefer_busy_poll",
                    libc::SOL_SOCKET,
                    libc::SO_PREFER_BUSY_POLL,
                    flag(self.prefer_busy_poll),
                ),
                (
                    "incoming_cpu",
                    libc::SOL_SOCKET,
                    libc::SO_INCOMING_CPU,
                    self.incoming_cpu.map(u32::from),
                ),
                (
                    "send_buffer_bytes",
                    libc::SOL_SOCKET,
                    libc::SO_SNDBUF,
                    self.send_buffer_bytes,
                ),
                (
                    "receive_buffer_bytes",
                    libc::SOL_SOCKET,
                    libc::SO_RCVBUF,
                    self.receive_buffer_bytes,
                ),
            ],
        )
    }
}

impl Readback {
    /// The options, in the order of the config.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.rows.into_iter().flatten()
    }

    /// The row of an option, by its name in the config.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<Row> {
        self.rows().find(|row| row.name == name)
    }
}

impl fmt::Display for Readback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, row) in self.rows().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            match row.got {
                // SO_INCOMING_CPU reads as -1 until a packet came.
                Some(u32::MAX) => write!(f, "{blank}{}=none", row.name)?,
                Some(got) => write!(f, "{blank}{}={got}", row.name)?,
                None => write!(f, "{blank}{}=refused", row.name)?,
            }
            if let Some(wanted) = row.wanted
                && row.got != row.wanted
            {
                write!(f, " (wanted {wanted})")?;
            }
        }
        Ok(())
    }
}

fn in_range(table: &str, name: &str, value: Option<u32>, least: u32, most: u32) -> Result<(), String> {
    match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(format!("{table}: {name} = {value} must be from {least} to {most}"))
        }
        _ => Ok(()),
    }
}

/// A flag that was not asked for is left as the kernel has it.
fn flag(on: bool) -> Option<u32> {
    on.then_some(1)
}

fn apply(socket: BorrowedFd<'_>, options: &[Wanted]) -> Readback {
    let mut rows = [None; ROWS_MAX];
    for (row, &(name, level, option, wanted)) in rows.iter_mut().zip(options) {
        let set_ok = wanted.is_none_or(|value| set_or_nearest(socket, level, option, value));
        let got = get(socket, level, option).ok().filter(|_| set_ok);
        *row = Some(Row { name, wanted, got });
    }
    Readback { rows }
}

/// Sets one option, to the nearest value above if the kernel has a lower bound that nobody can ask it for.
fn set_or_nearest(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, wanted: u32) -> bool {
    let has_bound = (level, option) == (libc::IPPROTO_TCP, TCP_RTO_MIN_US);
    let mut value = wanted;
    while set(socket, level, option, value).is_err() {
        if !has_bound || value == 0 || value >= RTO_MIN_DEFAULT_US {
            return false;
        }
        value = (value * 2).min(RTO_MIN_DEFAULT_US);
    }
    true
}

/// Sets one option whose value is an `int`.
pub(crate) fn set(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, value: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: the descriptor is open as long as it is borrowed; the pointer and length describe `value`, which the
    // kernel only reads.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), INT_LENGTH) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Ticks a second of the kernel's clock (CONFIG_HZ), by the shortest retransmission timeout that it takes: two ticks, to which
/// it rounds up whatever is above one. `None`: the kernel does not have the option.
pub(crate) fn ticks_per_second(socket: BorrowedFd<'_>) -> Option<u32> {
    let is_taken = |value| set(socket, libc::IPPROTO_TCP, TCP_RTO_MIN_US, value).is_ok();
    if !is_taken(RTO_MIN_DEFAULT_US) {
        return None;
    }
    let (mut refused, mut taken) = (0, RTO_MIN_DEFAULT_US);
    while taken - refused > 1 {
        let middle = u32::midpoint(refused, taken);
        if is_taken(middle) {
            taken = middle;
        } else {
            refused = middle;
        }
    }
    1_000_000_u32.checked_div(refused)
}

/// Reads TCP_INFO. A kernel that knows less than this program leaves the rest zero.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<libc::tcp_info> {
    // SAFETY: the struct is made of integers, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).expect("a small struct");
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel writes at most `length` bytes to `info`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(info)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Bytes in the send queue of a TCP socket, sent or not, that the peer has not acknowledged (SIOCOUTQ).
pub(crate) fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel writes an `int` to `bytes`.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 {
        Ok(bytes.cast_unsigned())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads one option whose value is an `int`; -1 reads as `u32::MAX`.
fn get(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int) -> io::Result<u32> {
    let mut value: libc::c_int = 0;
    let mut length = INT_LENGTH;
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel writes at most `length` bytes to `value`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(value.cast_unsigned())
    } else {
        Err(io::Error::last_os_error())
    }
}
