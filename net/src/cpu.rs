//! Which CPUs this process may use, and which thread runs where.
//!
//! Threads inherit the CPUs of the thread that starts them. So whoever pins itself starts its helper threads before, or
//! the helpers [`allow`] themselves the others.

use crate::error::SetupError;
use std::io;

/// CPU numbers that the kernel's fixed-size set holds: 0 to 1023.
pub const CPUS_MAX: usize = libc::CPU_SETSIZE as usize;

/// The CPUs this thread may run on, rising. Asked at start-up, before anything is pinned, they are the CPUs of the
/// process (what `taskset`, cgroups and containers left it).
#[must_use]
pub fn permitted() -> Vec<usize> {
    let mut set = empty_set();
    // SAFETY: the pointer and size describe `set`; 0 is this thread.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    // It fails only on a machine with more CPUs than the set holds; then nothing can be pinned by number anyhow.
    if result != 0 {
        return Vec::new();
    }
    // SAFETY: `cpu` is below the size of the set.
    (0..CPUS_MAX)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

/// Binds this thread to one CPU.
///
/// # Errors
/// The CPU does not exist or is not permitted to this process.
pub fn pin(cpu: usize) -> Result<(), SetupError> {
    allow(&[cpu])
}

/// Binds this thread to these CPUs.
///
/// # Errors
/// None of them is permitted to this process.
pub fn allow(cpus: &[usize]) -> Result<(), SetupError> {
    // 0 is the calling thread.
    bind(0, cpus)
}

/// Binds another thread of this process, by its [`thread_id`], to these CPUs.
///
/// # Errors
/// The thread is gone, or none of the CPUs is permitted to this process.
pub fn allow_thread(thread: i32, cpus: &[usize]) -> Result<(), SetupError> {
    bind(thread, cpus)
}

/// The kernel's id of this thread.
#[must_use]
pub fn thread_id() -> i32 {
    // SAFETY: takes no pointers and cannot fail.
    unsafe { libc::gettid() }
}

/// The CPU this thread runs on at this moment.
#[must_use]
pub fn current() -> usize {
    // SAFETY: takes no pointers.
    let cpu = unsafe { libc::sched_getcpu() };
    // It fails only on kernels without the call, older than any this runs on.
    usize::try_from(cpu).unwrap_or(0)
}

fn bind(thread: libc::pid_t, cpus: &[usize]) -> Result<(), SetupError> {
    let error = |source| {
        let advice = "configure CPUs that this process is permitted (`taskset -p $$`, `nproc`, the container's cpuset)";
        SetupError::new(format!("binding a thread to CPU {cpus:?}"), source, advice)
    };
    let mut set = empty_set();
    for &cpu in cpus {
        if cpu >= CPUS_MAX {
            return Err(error(io::Error::from_raw_os_error(libc::EINVAL)));
        }
        // SAFETY: `cpu` is below the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the pointer and size describe `set`, which the kernel only reads.
    let result = unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const set) };
    if result == 0 {
        Ok(())
    } else {
        Err(error(io::Error::last_os_error()))
    }
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: the type is an array of integers, for which all zeros is the empty set.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_pinned_thread_runs_on_its_cpu_and_others_keep_theirs() {
        let all = permitted();
        assert!(!all.is_empty());
        for &cpu in &all {
            thread::spawn(move || {
                pin(cpu).unwrap();
                assert_eq!((permitted(), current()), (vec![cpu], cpu));
            })
            .join()
            .unwrap();
        }
        assert_eq!(permitted(), all);
    }

    #[test]
    fn another_thread_is_bound_by_its_id() {
        let all = permitted();
        let last = *all.last().unwrap();
        let (id_sender, id) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let other = thread::spawn(move || {
            id_sender.send(thread_id()).unwrap();
            wait.recv().unwrap();
            permitted()
        });
        allow_thread(id.recv().unwrap(), &[last]).unwrap();
        go.send(()).unwrap();
        assert_eq!(other.join().unwrap(), [last]);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused_with_its_number() {
        for cpu in [CPUS_MAX - 1, CPUS_MAX, usize::MAX] {
            let text = pin(cpu).unwrap_err().to_string();
            assert!(text.contains(&cpu.to_string()), "{text}");
        }
    }
}
