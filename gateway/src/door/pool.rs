//! Threads for what takes milliseconds and must hold up neither the door nor a shard: password hashes, TLS handshakes.

use net::SetupError;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A fixed number of threads, each with one job at a time.
pub(super) struct Pool<T> {
    /// `None` once the threads are to end.
    jobs: Option<SyncSender<Job<T>>>,
    results: Receiver<T>,
    /// Jobs whose results have not been taken.
    busy: usize,
    threads: Vec<JoinHandle<()>>,
}

type Job<T> = Box<dyn FnOnce() -> T + Send>;

impl<T: Send + 'static> Pool<T> {
    /// So many threads.
    pub(super) fn new(count: usize) -> Result<Self, SetupError> {
        let (jobs, waiting) = sync_channel(count);
        let (done, results) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let threads = (0..count)
            .map(|_| {
                let (waiting, done) = (Arc::clone(&waiting), done.clone());
                let thread = std::thread::Builder::new().name("door-checks".to_owned());
                thread.spawn(move || work(&waiting, &done))
            })
            .collect::<Result<_, _>>()
            .map_err(|error| SetupError::new("starting the door's threads", error, "raise the limit of processes"))?;
        Ok(Self {
            jobs: Some(jobs),
            results,
            busy: 0,
            threads,
        })
    }

    /// Whether a thread is free.
    pub(super) const fn is_free(&self) -> bool {
        self.busy < self.threads.len()
    }

    /// Gives a job to a free thread. The caller has asked whether there is one.
    pub(super) fn start(&mut self, job: impl FnOnce() -> T + Send + 'static) {
        self.busy += 1;
        if let Some(jobs) = &self.jobs {
            // There is room for one job a thread, and the threads live as long as this.
            drop(jobs.try_send(Box::new(job)));
        }
    }

    /// The result of a job that is done.
    pub(super) fn done(&mut self) -> Option<T> {
        let result = self.results.try_recv().ok()?;
        self.busy -= 1;
        Some(result)
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic there was printed there.
            drop(thread.join());
        }
    }
}

fn work<T>(waiting: &Mutex<Receiver<Job<T>>>, done: &Sender<T>) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if done.send(job()).is_err() {
            return;
        }
    }
}
