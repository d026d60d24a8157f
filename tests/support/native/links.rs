//! Links between processes that can be cut: small TCP proxies on loopback, which end with whoever made them.

use std::net::SocketAddr;
use std::sync::mpsc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

/// What a link does with its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    Open,
    /// Those that are there are ended, and no new one is made.
    Cut,
}

/// A link from one address to another.
#[derive(Debug, Clone)]
pub struct Link(watch::Sender<Passage>);

impl Link {
    /// Ends its connections, and lets none be made.
    pub fn cut(&self) {
        self.0.send_replace(Passage::Cut);
    }

    /// Lets connections pass again.
    pub fn mend(&self) {
        self.0.send_replace(Passage::Open);
    }
}

/// Several links, served by a thread of their own: tests that share them come and go with their runtimes.
pub struct Links {
    links: Vec<Link>,
    /// Dropped with this, and that ends the thread.
    _end: oneshot::Sender<()>,
}

impl Links {
    /// Serves links from each first address to its second one.
    pub fn serve(ends: Vec<(SocketAddr, SocketAddr)>) -> Self {
        let (end, ended) = oneshot::channel();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut links = Vec::new();
                for (from, to) in ends {
                    let listener = TcpListener::bind(from).await;
                    let listener = listener.unwrap_or_else(|error| panic!("{from}: {error}"));
                    let passage = watch::Sender::new(Passage::Open);
                    tokio::spawn(accept(listener, to, passage.clone()));
                    links.push(Link(passage));
                }
                sender.send(links).ok();
                ended.await.ok();
            });
        });
        Self {
            links: receiver.recv().expect("the links are served"),
            _end: end,
        }
    }

    /// One of them, in the order of the addresses.
    pub fn get(&self, number: usize) -> &Link {
        &self.links[number]
    }
}

async fn accept(listener: TcpListener, to: SocketAddr, passage: watch::Sender<Passage>) {
    while let Ok((client, _)) = listener.accept().await {
        let passage = passage.subscribe();
        if *passage.borrow() == Passage::Open {
            tokio::spawn(hand_on(client, to, passage));
        }
    }
}

async fn hand_on(mut client: TcpStream, to: SocketAddr, mut passage: watch::Receiver<Passage>) {
    let Ok(mut server) = TcpStream::connect(to).await else {
        return;
    };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = passage.wait_for(|passage| *passage == Passage::Cut) => {}
    }
}
