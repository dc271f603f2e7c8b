//! Servers and clients on the official Rust SDK, for `tests/interop` and `bench`. All of them are in one program:
//!
//! ```text
//! peer serve OFFER stdio|http               a server that offers the content of `offer.json`
//! peer scenario REVISION stdio|http TARGET… the client's side of the scenario
//! peer echo                                 an echo server over stdio
//! peer echo-http app|streams PORT           an echo server over HTTP
//! peer call TARGET REVISION PYTHON          a client to measure
//! ```
#![allow(deprecated)] // Roots, sampling and logging are, and all revisions have them.

mod bench;
mod client;
mod server;
mod wire;

use tokio::runtime::Builder;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: peer serve|scenario|echo|echo-http|call ARGUMENT…";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // On one thread, the SDK calls the handlers of notifications in the order in which these arrive.
    let mut threads = match given.as_slice() {
        ["scenario", ..] => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = threads.enable_all().build().expect("a runtime can be started");
    let done = runtime.block_on(run(&given));
    if let Err(error) = &done {
        eprintln!("{error}");
    }
    std::process::exit(done.is_err().into()); // without the threads that read standard input
}

async fn run(given: &[&str]) -> Outcome<()> {
    match given {
        ["serve", offer, transport @ ..] => server::serve(offer, transport == ["http"]).await,
        ["scenario", revision, _, target @ ..] if !target.is_empty() => client::play(revision, target).await,
        ["echo"] => bench::serve().await,
        ["echo-http", kind, port] => bench::serve_over_http(kind, port).await,
        ["call", target, revision, python] => bench::call_repeatedly(target, revision, python).await,
        _ => Err(USAGE.into()),
    }
}
