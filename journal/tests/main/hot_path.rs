//! Appending allocates nothing and makes no system call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;

use journal::{JournalWriter, Watermark};
use proto::journal::record_length;
use types::Timestamp;

use crate::{read, small};

/// Counts what the present thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Appends as an owner does, around the ring several times.
fn append_many(journal: &mut JournalWriter, count: u64) {
    let payload = [7_u8; 61];
    for number in 0..count {
        while !journal.room(record_length(8 + payload.len())) {
            std::hint::spin_loop();
        }
        let end = journal.append(1, 1, Timestamp(number), &[&number.to_le_bytes(), &payload]);
        assert!(journal.watermark(Watermark::Written) <= end && journal.watermark(Watermark::Synced) <= end);
    }
}

#[test]
fn appending_allocates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = JournalWriter::open(&small(directory.path())).unwrap();
    let before = ALLOCATIONS.get();
    append_many(&mut journal, 2_000);
    assert_eq!(ALLOCATIONS.get() - before, 0);
    drop(vec![1_u8]);
    assert_eq!(ALLOCATIONS.get() - before, 1, "the count counts");
}

/// Set in the process that appends under seccomp: the journal's directory.
const CONFINED: &str = "TICKGATE_JOURNAL_CONFINED";

/// In seccomp's strict mode the kernel ends a thread at any system call but read, write and exit. This test starts itself
/// again as a process of its own, in which a thread enters that mode, appends, writes a line, and then makes a call, which
/// is the last it does if the mode was on.
#[test]
fn appending_makes_no_system_call() {
    if let Some(directory) = std::env::var_os(CONFINED) {
        confined(Path::new(&directory));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hot_path::appending_makes_no_system_call", "--nocapture"])
        .env(CONFINED, directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("appended"), "{said}");
    assert!(!said.contains("still here"), "the mode was not on: nothing was tested");
    assert_eq!(read(directory.path()).0.len(), 5_000);
    // What the process left in the ring goes to the disk, and the ring with it.
    JournalWriter::open(&small(directory.path())).unwrap().close().unwrap();
}

fn confined(directory: &Path) {
    let mut journal = JournalWriter::open(&small(directory)).unwrap();
    let (tell, told) = mpsc::sync_channel(1);
    let thread = std::thread::spawn(move || {
        tell.send(net::cpu::thread_id()).unwrap();
        // Its buffer is made before memory can no longer be asked for; its lock must not be held at the end.
        println!("confined");
        // SAFETY: takes no pointers; restricts this thread alone.
        let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) };
        assert_eq!(result, 0);
        append_many(&mut journal, 5_000);
        println!("appended");
        // SAFETY: takes nothing.
        unsafe { libc::getppid() };
        println!("still here");
    });
    let task = format!("/proc/self/task/{}", told.recv().unwrap());
    while Path::new(&task).exists() {
        std::thread::yield_now();
    }
    // A thread that was ended by the kernel has no result to join.
    std::mem::forget(thread);
}
