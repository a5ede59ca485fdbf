//! Threads, collections, reallocations, a child process, panics that are caught and one that is not.
use std::collections::{BTreeMap, HashMap};
use std::process::Command;
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

fn work(n: usize) -> usize {
    let mut map = HashMap::new();
    for i in 0..20000 {
        *map.entry(format!("{:x}", i * 7919 * n % 4099)).or_insert(0usize) += 1;
    }
    let sorted: BTreeMap<_, _> = map.into_iter().collect();
    let mut text = String::new();
    for (k, v) in &sorted {
        text.push_str(k);
        text.push_str(&v.to_string());
    }
    text.len()
}

fn main() {
    let shared = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (1..9)
        .map(|n| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.lock().unwrap().push((n, work(n))))
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    let mut results = shared.lock().unwrap().clone();
    results.sort();
    println!("{:?}", results);
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        for i in 0..10000 {
            send.send(vec![i as u8; i % 200]).unwrap();
        }
    });
    println!("{}", receive.iter().map(|v| v.len()).sum::<usize>());
    println!("{}", thread::spawn(|| panic!("caught")).join().is_err());
    let child = Command::new("sh").arg("-c").arg("echo child; exit 3").output().unwrap();
    println!("{} {:?}", String::from_utf8_lossy(&child.stdout).trim(), child.status.code());
    let none: Option<Box<i32>> = None;
    println!("{}", none.expect("on purpose"));
}
