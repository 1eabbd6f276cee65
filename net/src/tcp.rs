//! Non-blocking TCP with every option tuned and read back.

use crate::error::{SetupError, bind_advice, socket_advice};
use crate::options::{self, QuickAck, Readback, TcpOptions};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, IoSlice, Read};
use std::net::{Shutdown, SocketAddr};
use std::ops::Add;
use std::os::fd::{AsFd, BorrowedFd};
use types::Duration;

/// Connections that wait to be accepted; the kernel refuses more.
pub const BACKLOG_MAX: i32 = 1024;

/// A connection.
#[derive(Debug)]
pub struct TcpStream {
    stream: std::net::TcpStream,
    readback: Readback,
    rearms_quick_ack: bool,
}

/// A connection that is being made.
#[derive(Debug)]
pub struct TcpConnecting {
    socket: Option<Socket>,
    options: TcpOptions,
}

/// Accepts connections.
#[derive(Debug)]
pub struct TcpListener {
    listener: std::net::TcpListener,
    options: TcpOptions,
}

/// What a receive gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The peer closed its side; nothing will come any more.
    Closed,
}

/// What was sent again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Retransmits {
    /// In all.
    pub total: u64,
    /// Of those, the ones that the peer had already, as far as it told us.
    pub spurious: u64,
}

impl Add for Retransmits {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            spurious: self.spurious + other.spurious,
        }
    }
}

impl TcpListener {
    /// Listens on a local address; port 0 lets the kernel choose. The options are those of the accepted connections.
    ///
    /// # Errors
    /// The address is taken or not of this machine, or no socket can be had.
    pub fn bind(local: SocketAddr, options: &TcpOptions) -> Result<Self, SetupError> {
        let doing = || format!("binding TCP {local}");
        let socket = new_socket(local).map_err(|source| {
            let advice = socket_advice(&source);
            SetupError::new(doing(), source, advice)
        })?;
        options.apply_buffers(socket.as_fd());
        let listen = || -> io::Result<()> {
            // A restarted process takes its port back at once, though old connections are in TIME_WAIT.
            socket.set_reuse_address(true)?;
            socket.bind(&local.into())?;
            socket.listen(BACKLOG_MAX)
        };
        listen().map_err(|source| {
            let advice = bind_advice(&source);
            SetupError::new(doing(), source, advice)
        })?;
        Ok(Self {
            listener: socket.into(),
            options: *options,
        })
    }

    /// The next connection and its source, or `None` when nobody waits.
    ///
    /// # Errors
    /// The process or the machine is out of file descriptors, or the listener is unusable.
    pub fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        match self.listener.accept() {
            Ok((stream, from)) => {
                stream.set_nonblocking(true)?;
                Ok(Some((TcpStream::new(stream, &self.options), from)))
            }
            // Who gave up between the handshake and this call is nobody.
            Err(error) if is_not_now(&error) || error.kind() == io::ErrorKind::ConnectionAborted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl TcpConnecting {
    /// Begins to connect, from a given local address if there is one, and returns at once. Allocates nothing, so that a
    /// link may try again and again.
    ///
    /// # Errors
    /// No socket can be had, the local address is taken or not of this machine, or there is no route.
    pub fn start(peer: SocketAddr, local: Option<SocketAddr>, options: &TcpOptions) -> io::Result<Self> {
        let socket = new_socket(peer)?;
        options.apply_buffers(socket.as_fd());
        if let Some(local) = local {
            socket.set_reuse_address(true)?;
            socket.bind(&local.into())?;
        }
        match socket.connect(&SockAddr::from(peer)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(Self {
                socket: Some(socket),
                options: *options,
            }),
        }
    }

    /// The connection, once it is there; `None` while it is being made.
    ///
    /// # Errors
    /// The peer refused or did not answer. The attempt is over.
    pub fn poll(&mut self) -> io::Result<Option<TcpStream>> {
        let Some(socket) = self.socket.take() else {
            return Err(io::Error::from(io::ErrorKind::NotConnected));
        };
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        match socket.peer_addr() {
            Ok(_) => Ok(Some(TcpStream::new(socket.into(), &self.options))),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                self.socket = Some(socket);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl TcpStream {
    /// Connects and waits for it at most `timeout`: for set-up, where waiting is what the caller wants.
    ///
    /// # Errors
    /// The peer refused or did not answer in time.
    pub fn connect(peer: SocketAddr, options: &TcpOptions, timeout: Duration) -> Result<Self, SetupError> {
        let connect = || -> io::Result<Socket> {
            let socket = new_socket(peer)?;
            options.apply_buffers(socket.as_fd());
            socket.connect_timeout(&peer.into(), std::time::Duration::from_nanos(timeout.0))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket =
            connect().map_err(|source| SetupError::new(format!("connecting TCP to {peer}"), source, CONNECT_ADVICE))?;
        Ok(Self::new(socket.into(), options))
    }

    /// `stream` is non-blocking.
    fn new(stream: std::net::TcpStream, options: &TcpOptions) -> Self {
        let readback = options.apply(stream.as_fd());
        Self {
            stream,
            readback,
            rearms_quick_ack: options.quick_ack == QuickAck::Rearmed,
        }
    }

    /// Receives what is there, up to the buffer's length.
    ///
    /// # Errors
    /// The connection failed (reset, timed out).
    ///
    /// # Panics
    /// When the buffer is empty: nothing and closed could not be told apart.
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        assert!(!buffer.is_empty(), "a receive needs room");
        match self.stream.read(buffer) {
            Ok(0) => Ok(Received::Closed),
            Ok(length) => {
                if self.rearms_quick_ack {
                    // A kernel that refuses the option has done so in the read-back.
                    let _ = options::set(self.stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
                }
                Ok(Received::Bytes(length))
            }
            Err(error) if is_not_now(&error) => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Sends as much as the kernel takes now and gives how much that was; 0 when it takes nothing now.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let socket = socket2::SockRef::from(&self.stream);
        taken(socket.send_with_flags(bytes, libc::MSG_NOSIGNAL))
    }

    /// Sends several pieces in one system call, as [`send`](Self::send): all replies of one turn leave together.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let socket = socket2::SockRef::from(&self.stream);
        taken(socket.send_vectored_with_flags(pieces, libc::MSG_NOSIGNAL))
    }

    /// Segments that the kernel sent again since the connection was made: a system call.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn retransmits(&self) -> io::Result<Retransmits> {
        let info = options::tcp_info(self.stream.as_fd())?;
        let total = u64::from(info.tcpi_total_retrans);
        Ok(Retransmits {
            total,
            // The peer tells by a duplicate SACK (RFC 2883). The network may double a segment, too.
            spurious: u64::from(info.tcpi_dsack_dups).min(total),
        })
    }

    /// Bytes that were sent here and that the peer has not acknowledged: a system call.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn unacknowledged(&self) -> io::Result<u32> {
        options::unacknowledged(self.stream.as_fd())
    }

    /// Ends both directions. What was sent before still arrives.
    pub fn close(&mut self) {
        // A connection that is already gone is as closed as can be.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// The peer's address.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// The local address.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// What the kernel gave for each option.
    #[must_use]
    pub fn readback(&self) -> &Readback {
        &self.readback
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

const CONNECT_ADVICE: &str = "check that the peer is running and listens on that address";

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )
}

fn taken(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if is_not_now(&error) => Ok(0),
        other => other,
    }
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(options: &TcpOptions) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), options).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn pair(options: &TcpOptions) -> (TcpStream, TcpStream) {
        let (listener, address) = listen(options);
        let client = TcpStream::connect(address, options, Duration::from_secs(5)).unwrap();
        // Loopback finishes the handshake inside connect.
        let (server, _) = listener.accept().unwrap().unwrap();
        (client, server)
    }

    /// Receives until something is there.
    fn recv(stream: &mut TcpStream) -> Vec<u8> {
        let mut buffer = [0; 64];
        loop {
            match stream.recv(&mut buffer).unwrap() {
                Received::Bytes(length) => return buffer[..length].to_vec(),
                Received::Nothing => {}
                Received::Closed => return Vec::new(),
            }
        }
    }

    #[test]
    fn nothing_to_receive_or_accept_is_no_error() {
        let (listener, _) = listen(&TcpOptions::default());
        assert!(listener.accept().unwrap().is_none());
        let (mut client, _server) = pair(&TcpOptions::default());
        assert_eq!(client.recv(&mut [0; 8]).unwrap(), Received::Nothing);
    }

    #[test]
    fn pieces_arrive_as_one_and_a_close_is_told_from_nothing() {
        let (mut client, mut server) = pair(&TcpOptions::tuned());
        let pieces = [IoSlice::new(b"one "), IoSlice::new(b"two")];
        assert_eq!(client.send_vectored(&pieces).unwrap(), 7);
        assert_eq!(recv(&mut server), b"one two");
        client.close();
        assert_eq!(recv(&mut server), b"");
    }

    #[test]
    fn a_peer_that_does_not_read_is_told_by_zero_and_not_by_an_error() {
        let (mut client, mut server) = pair(&TcpOptions::tuned());
        let chunk = [7_u8; 4096];
        let mut sent = 0;
        loop {
            let taken = client.send(&chunk).unwrap();
            if taken == 0 {
                break;
            }
            sent += taken;
        }
        let (mut received, mut buffer) = (0, [0; 4096]);
        while received < sent {
            if let Received::Bytes(length) = server.recv(&mut buffer).unwrap() {
                received += length;
            }
        }
        assert!(client.send(&chunk).unwrap() > 0);
    }

    #[test]
    fn a_send_to_a_peer_that_is_gone_fails_and_does_not_kill_the_process() {
        let (mut client, server) = pair(&TcpOptions::default());
        drop(server);
        while client.send(b"hello").is_ok() {}
    }

    #[test]
    fn a_connection_is_made_without_waiting() {
        let (listener, address) = listen(&TcpOptions::tuned());
        let mut connecting = TcpConnecting::start(address, None, &TcpOptions::tuned()).unwrap();
        let mut client = loop {
            if let Some(stream) = connecting.poll().unwrap() {
                break stream;
            }
        };
        let (mut server, from) = listener.accept().unwrap().unwrap();
        assert_eq!(from, client.local_addr().unwrap());
        client.send(b"hello").unwrap();
        assert_eq!(recv(&mut server), b"hello");
    }

    #[test]
    fn a_refused_connection_is_an_error_once() {
        let (listener, address) = listen(&TcpOptions::default());
        drop(listener);
        let error = loop {
            match TcpConnecting::start(address, None, &TcpOptions::default()) {
                Err(error) => break error.kind(),
                Ok(mut connecting) => match connecting.poll() {
                    Err(error) => break error.kind(),
                    Ok(stream) => assert!(stream.is_none()),
                },
            }
        };
        assert_eq!(error, io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn every_option_is_read_back() {
        let options = TcpOptions {
            send_buffer_bytes: Some(65_536),
            receive_buffer_bytes: Some(65_536),
            ..TcpOptions::tuned()
        };
        let (client, server) = pair(&options);
        for stream in [&client, &server] {
            let readback = stream.readback();
            assert_eq!(readback.rows().count(), 10);
            for name in ["no_delay", "quick_ack", "user_timeout_ms", "notsent_lowat_bytes"] {
                let row = readback.row(name).unwrap();
                assert_eq!(row.got, row.wanted, "{readback}");
            }
            // A kernel before 6.11 does not know this one.
            let rto_min = readback.row("rto_min_us").unwrap();
            assert!(
                rto_min
                    .got
                    .is_none_or(|got| got >= rto_min.wanted.unwrap() && got < 200_000),
                "{readback}"
            );
            for name in ["send_buffer_bytes", "receive_buffer_bytes"] {
                assert!(readback.row(name).unwrap().got.unwrap() >= 65_536, "{readback}");
            }
        }
    }

    #[test]
    fn quick_ack_is_set_again_after_each_receive_where_it_is_to_be() {
        for (quick_ack, after) in [(QuickAck::Off, 0), (QuickAck::Once, 0), (QuickAck::Rearmed, 1)] {
            let options = TcpOptions {
                quick_ack,
                ..TcpOptions::tuned()
            };
            let (mut client, mut server) = pair(&options);
            // As the kernel does it by itself.
            options::set(server.as_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0).unwrap();
            client.send(b"hello").unwrap();
            assert_eq!(recv(&mut server), b"hello");
            let now = TcpOptions::default().apply(server.as_fd());
            assert_eq!(now.row("quick_ack").unwrap().got, Some(after), "{quick_ack:?}");
        }
    }

    #[test]
    fn a_default_connection_asks_for_nothing() {
        let (client, _server) = pair(&TcpOptions::default());
        assert!(client.readback().rows().all(|row| row.wanted.is_none()));
        assert_eq!(client.readback().row("no_delay").unwrap().got, Some(0));
    }

    #[test]
    fn an_option_that_is_refused_is_shown_and_does_not_fail_the_connection() {
        let options = TcpOptions {
            user_timeout_ms: Some(u32::MAX),
            ..TcpOptions::default()
        };
        let (client, _server) = pair(&options);
        let text = client.readback().to_string();
        assert!(text.contains("user_timeout_ms=refused (wanted 4294967295)"), "{text}");
    }

    #[test]
    fn a_taken_port_is_an_error_that_says_what_to_do() {
        let (_listener, address) = listen(&TcpOptions::default());
        let error = TcpListener::bind(address, &TcpOptions::default()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&address.to_string()) && text.contains("stop the other process"),
            "{text}"
        );
    }
}
