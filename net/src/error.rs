//! Errors of set-up: what was being done, where, why it failed, and what to do next.

use std::fmt;
use std::io;

/// Something that a socket, an option or a thread needed at start-up was refused.
///
/// Prints as `binding 127.0.0.1:9000: Address already in use (os error 98); stop the other process or change the address`.
#[derive(Debug)]
pub struct SetupError {
    doing: String,
    source: io::Error,
    advice: &'static str,
}

impl SetupError {
    /// `doing` names the action and the place ("binding 127.0.0.1:9000"), `advice` the next step of whoever reads it.
    pub fn new(doing: impl Into<String>, source: io::Error, advice: &'static str) -> Self {
        Self {
            doing: doing.into(),
            source,
            advice,
        }
    }

    /// What kind of refusal it was.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.doing, self.source, self.advice)
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<SetupError> for io::Error {
    fn from(error: SetupError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// What to do about a failed bind.
pub(crate) fn bind_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the other process that holds it, or configure another port",
        io::ErrorKind::AddrNotAvailable => "configure an address of this machine (`ip addr` lists them)",
        io::ErrorKind::PermissionDenied => "configure a port above 1023, or grant CAP_NET_BIND_SERVICE",
        _ => "check the configured address",
    }
}

/// What to do about a socket that could not be made.
pub(crate) fn socket_advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => "raise the open-file limit (`ulimit -n`)",
        Some(libc::ENFILE) => "raise fs.file-max",
        Some(libc::EAFNOSUPPORT) => "use an address family that this kernel has",
        _ => "check what the kernel log says",
    }
}
