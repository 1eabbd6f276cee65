//! Requests and completions by their numbers.

use super::zeroed;
use rdma_mummy_sys as sys;
use std::ffi::CStr;
use std::fmt;

/// How a request or receive ended.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct WorkCompletion(sys::ibv_wc);

/// Taken from a completion queue at once.
pub(crate) const WORK_COMPLETIONS: usize = COMPLETIONS as usize;
pub(super) const COMPLETIONS: libc::c_int = 16;

impl WorkCompletion {
    /// None yet.
    pub(crate) const NONE: Self = {
        // SAFETY: numbers.
        Self(unsafe { zeroed() })
    };

    /// The name that it was posted under.
    pub(crate) const fn id(&self) -> u64 {
        self.0.wr_id
    }

    /// The queue pair at which it was posted.
    pub(crate) const fn qpn(&self) -> u32 {
        self.0.qp_num
    }

    /// One of [`status`].
    pub(crate) const fn status(&self) -> sys::ibv_wc_status::Type {
        self.0.status
    }

    /// The same, for people.
    pub(crate) fn status_text(&self) -> String {
        // SAFETY: the library's own number; its text is there for good, or null.
        let text = unsafe { sys::ibv_wc_status_str(self.status()) };
        if text.is_null() {
            return format!("status {}", self.status());
        }
        // SAFETY: it ends with 0.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// Bytes that came. This and what follows is of a receive that succeeded.
    pub(crate) const fn length(&self) -> usize {
        self.0.byte_len as usize
    }

    /// An RDMA WRITE used the receive up, and not a SEND.
    pub(crate) const fn is_write(&self) -> bool {
        self.0.opcode == sys::ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM
    }

    /// What the peer gave with its message.
    pub(crate) const fn immediate(&self) -> Option<u32> {
        if self.0.wc_flags & sys::ibv_wc_flags::IBV_WC_WITH_IMM.0 == 0 {
            return None;
        }
        // SAFETY: the flag says which of the union's two numbers it is.
        Some(u32::from_be(unsafe { self.0.imm_data_invalidated_rkey_union.imm_data }))
    }
}

impl fmt::Debug for WorkCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}: {}", self.id(), self.status())
    }
}

/// What a request does.
pub(crate) mod opcode {
    use super::sys::ibv_wr_opcode as opcode;

    pub(crate) const WRITE: opcode::Type = opcode::IBV_WR_RDMA_WRITE;
    pub(crate) const WRITE_WITH_IMM: opcode::Type = opcode::IBV_WR_RDMA_WRITE_WITH_IMM;
    pub(crate) const SEND: opcode::Type = opcode::IBV_WR_SEND;
    pub(crate) const SEND_WITH_IMM: opcode::Type = opcode::IBV_WR_SEND_WITH_IMM;
    pub(crate) const READ: opcode::Type = opcode::IBV_WR_RDMA_READ;
}

/// How it ended.
pub(crate) mod status {
    use super::sys::ibv_wc_status as status;

    pub(crate) const SUCCESS: status::Type = status::IBV_WC_SUCCESS;
    pub(crate) const LOC_LEN_ERR: status::Type = status::IBV_WC_LOC_LEN_ERR;
    pub(crate) const WR_FLUSH_ERR: status::Type = status::IBV_WC_WR_FLUSH_ERR;
    pub(crate) const BAD_RESP_ERR: status::Type = status::IBV_WC_BAD_RESP_ERR;
    pub(crate) const LOC_ACCESS_ERR: status::Type = status::IBV_WC_LOC_ACCESS_ERR;
    pub(crate) const REM_INV_REQ_ERR: status::Type = status::IBV_WC_REM_INV_REQ_ERR;
    pub(crate) const REM_ACCESS_ERR: status::Type = status::IBV_WC_REM_ACCESS_ERR;
    pub(crate) const REM_OP_ERR: status::Type = status::IBV_WC_REM_OP_ERR;
    pub(crate) const RETRY_EXC_ERR: status::Type = status::IBV_WC_RETRY_EXC_ERR;
    pub(crate) const RNR_RETRY_EXC_ERR: status::Type = status::IBV_WC_RNR_RETRY_EXC_ERR;
}
