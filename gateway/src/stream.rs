//! A client's connection, with TLS or without.
//!
//! A TLS connection allocates and copies on its own account: the rule that the path of an order allocates nothing does not
//! hold for it. Its handshake is done on the door's threads for slow things, so a shard only ever sees established ones.

use net::tcp::{Received, TcpStream};
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// A connection of a client.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one without TLS is the usual one and stays where it is; there is one a session"
)]
pub enum Stream {
    /// Without TLS.
    Tcp(TcpStream),
    /// With it.
    Tls(Box<TlsStream>),
}

/// A TLS connection. What it holds is bounded: one record that comes in, and 64 KiB that go out.
#[derive(Debug)]
pub struct TlsStream {
    tcp: TcpStream,
    tls: ServerConnection,
    /// Bytes that have been decrypted and not been received: no readiness of the socket tells of them.
    decrypted: usize,
}

/// Encrypted bytes that may wait for the socket, a connection.
const SEND_BYTES_MAX: usize = 64 << 10;

/// Reads of the socket before others get their turn: records need not carry anything.
const MAX_READS: usize = 16;

impl Stream {
    /// Bytes that a TLS connection holds at most during its handshake: what comes in, encrypted and decrypted, and keys.
    pub const HANDSHAKE_BYTES: usize = 48 << 10;

    /// Bytes that a TLS connection holds at most.
    pub const TLS_BYTES: usize = Self::HANDSHAKE_BYTES + SEND_BYTES_MAX;

    /// A connection that begins with a TLS handshake.
    ///
    /// # Errors
    /// The library refuses its settings.
    pub fn tls(tcp: TcpStream, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let mut tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        tls.set_buffer_limit(Some(SEND_BYTES_MAX));
        Ok(Self::Tls(Box::new(TlsStream { tcp, tls, decrypted: 0 })))
    }

    /// Receives what is there, as [`TcpStream::recv`].
    ///
    /// # Errors
    /// The connection failed; [`ErrorKind::InvalidData`] when the peer broke TLS or its certificate is not accepted.
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        match self {
            Self::Tcp(tcp) => tcp.recv(buffer),
            Self::Tls(tls) => tls.recv(buffer),
        }
    }

    /// Whether its TLS handshake is not done.
    pub fn is_shaking_hands(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(tls) => tls.tls.is_handshaking(),
        }
    }

    /// Goes on with the TLS handshake, as far as what has come allows. Takes up to milliseconds.
    ///
    /// # Errors
    /// As [`Stream::recv`]; [`ErrorKind::UnexpectedEof`] when the peer has closed.
    pub fn shake_hands(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) => Ok(()),
            Self::Tls(tls) => tls.shake_hands(),
        }
    }

    /// Whether a receive gives more although the socket is not ready.
    pub const fn has_more(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(tls) => tls.decrypted > 0,
        }
    }

    /// Sends as much as is taken now and gives how much that was, as [`TcpStream::send`].
    ///
    /// # Errors
    /// The connection failed.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.send(bytes),
            Self::Tls(tls) => tls.send(bytes),
        }
    }

    /// Whether something that was taken still waits for the socket.
    pub fn is_backed_up(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(tls) => tls.tls.wants_write(),
        }
    }

    /// Sends what waits, as far as the socket takes it.
    ///
    /// # Errors
    /// The connection failed.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) => Ok(()),
            Self::Tls(tls) => tls.flush(),
        }
    }

    /// The certificate that the client came with, in DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Tcp(_) => None,
            Self::Tls(tls) => Some(tls.tls.peer_certificates()?.first()?.as_ref()),
        }
    }

    /// Ends both directions. What was sent before still arrives.
    pub fn close(&mut self) {
        match self {
            Self::Tcp(tcp) => tcp.close(),
            Self::Tls(tls) => {
                tls.tls.send_close_notify();
                // A connection that is already gone is as closed as can be.
                drop(tls.flush());
                tls.tcp.close();
            }
        }
    }
}

impl TlsStream {
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        for _ in 0..MAX_READS {
            match self.tls.reader().read(buffer) {
                Ok(0) => return Ok(Received::Closed),
                Ok(count) => {
                    self.decrypted -= count;
                    return Ok(Received::Bytes(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The peer closed without saying so in TLS; what was cut off is told by the protocol above.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Received::Closed),
                Err(error) => return Err(error),
            }
            match self.read_record() {
                Ok(0) => return Ok(Received::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(error) => return Err(error),
            }
        }
        Ok(Received::Nothing)
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        for _ in 0..MAX_READS {
            match self.read_record() {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) if self.tls.is_handshaking() => {}
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what the socket has into the library, and sends what that answers. Gives the bytes taken.
    fn read_record(&mut self) -> io::Result<usize> {
        let count = self.tls.read_tls(&mut Socket(&mut self.tcp))?;
        let outcome = self.tls.process_new_packets();
        // The next step of a handshake, or the alert that says what was wrong.
        self.flush()?;
        let state = outcome.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        self.decrypted = state.plaintext_bytes_to_read();
        Ok(count)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.tls.writer().write(bytes)?;
        self.flush()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket(&mut self.tcp)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(tcp) => tcp.as_fd(),
            Self::Tls(tls) => tls.tcp.as_fd(),
        }
    }
}

/// The socket as the TLS library wants it.
struct Socket<'a>(&'a mut TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.recv(buffer)? {
            Received::Bytes(count) => Ok(count),
            Received::Nothing => Err(ErrorKind::WouldBlock.into()),
            Received::Closed => Ok(0),
        }
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        taken(self.0.send(bytes)?)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        taken(self.0.send_vectored(pieces)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn taken(count: usize) -> io::Result<usize> {
    match count {
        0 => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        _ => Ok(count),
    }
}
