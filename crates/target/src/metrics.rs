//! What a served drive does, for whoever watches: figures as text in the exposition format of Prometheus, over HTTP.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long a client may take to ask, and to take its answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clients that are answered at a time; for one more the oldest that has said nothing is turned away, or else the oldest.
const CLIENTS_MAX: usize = 16;

/// How long nobody is answered after a client that the system could not let in: it has no file left, say, and says so at once every time.
const PAUSE: Duration = Duration::from_millis(50);

/// Bytes of a request that are looked at.
const REQUEST_MAX: usize = 4096;

/// Where things stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Connections open now.
    pub connections: u64,
    /// Connections accepted so far.
    pub accepted: u64,
    /// Connections ended because their host broke the protocol.
    pub violations: u64,
    /// Doorbells that a virtual machine's monitor sent.
    pub doorbells_sent: u64,
    /// Controllers ended because their host was silent.
    pub expired: u64,
    /// Controllers alive now.
    pub controllers: u64,
    /// Commands that the firmware works on now.
    pub outstanding: u64,
    /// Read, Compare and Copy commands completed.
    pub reads: u64,
    /// Write and Copy commands completed.
    pub writes: u64,
    /// Bytes that hosts had read, compared or verified.
    pub bytes_read: u64,
    /// Bytes that hosts had written or copied.
    pub bytes_written: u64,
    /// Commands that lost data.
    pub media_errors: u64,
    /// Share of the endurance used, in per cent.
    pub percentage_used: u64,
}

/// The figures as the server last left them.
pub(crate) type Shared = Arc<Mutex<Figures>>;

/// A figure on the page.
struct Line {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Figures) -> u64,
}

macro_rules! lines {
    ($($name:literal $kind:ident $field:ident $help:literal;)*) => {
        &[$(Line { name: $name, kind: stringify!($kind), help: $help, value: |figures| figures.$field }),*]
    };
}

/// Everything there is, in the order of the page.
const LINES: &[Line] = lines! {
    "flashloom_connections" gauge connections "Connections open.";
    "flashloom_connections_accepted_total" counter accepted "Connections accepted.";
    "flashloom_protocol_violations_total" counter violations "Connections ended because their host broke the protocol.";
    "flashloom_doorbells_sent_total" counter doorbells_sent "Doorbells that a monitor sent as messages.";
    "flashloom_keep_alive_expiries_total" counter expired "Controllers ended because their host was silent.";
    "flashloom_controllers" gauge controllers "Controllers alive.";
    "flashloom_commands_outstanding" gauge outstanding "Commands that the firmware works on.";
    "flashloom_reads_total" counter reads "Read, Compare and Copy commands completed.";
    "flashloom_writes_total" counter writes "Write and Copy commands completed.";
    "flashloom_read_bytes_total" counter bytes_read "Bytes that hosts had read, compared or verified.";
    "flashloom_written_bytes_total" counter bytes_written "Bytes that hosts had written or copied.";
    "flashloom_media_errors_total" counter media_errors "Commands that found data lost or wrong, also what a host made unreadable.";
    "flashloom_endurance_used_percent" gauge percentage_used "Share of the endurance used.";
};

impl Figures {
    /// The page.
    pub fn page(&self) -> String {
        LINES.iter().map(|line| figure(line.name, line.kind, line.help, (line.value)(self))).collect()
    }
}

/// One figure, as the page shows it: `kind` is `counter` or `gauge`.
pub fn figure(name: &str, kind: &str, help: &str, value: u64) -> String {
    family(name, kind, help, [(String::new(), value.to_string())])
}

/// Figures of one name, each with what follows the name, which tells it from the others, and its value.
pub fn family(name: &str, kind: &str, help: &str, figures: impl IntoIterator<Item = (String, String)>) -> String {
    let head = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    figures.into_iter().fold(head, |page, (which, value)| page + &format!("{name}{which} {value}\n"))
}

/// What else the page says, by whoever knows more of the drive than its front end: figures as [`figure`] has them.
pub type Further = Box<dyn Fn() -> String + Send + Sync>;

/// Who asks for the page.
struct Client {
    stream: TcpStream,
    spoke: AtomicBool,
}

impl Client {
    fn is_silent(&self) -> bool {
        !self.spoke.load(Ordering::Acquire)
    }
}

/// A page that can be asked for until this is dropped.
pub struct Metrics {
    listener: TcpListener,
    figures: Shared,
    further: Option<Further>,
    over: Arc<AtomicBool>,
}

impl Metrics {
    /// Listens at `address` for whoever wants a server's figures.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub(crate) fn listen(address: SocketAddr, figures: Shared) -> io::Result<Metrics> {
        Ok(Metrics { listener: TcpListener::bind(address)?, figures, further: None, over: Arc::default() })
    }

    /// Says more than the front end knows.
    #[must_use]
    pub fn with(self, further: Further) -> Self {
        Metrics { further: Some(further), ..self }
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Ends [`Metrics::run`] from another thread.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn ender(&self) -> io::Result<impl FnOnce() + Send + 'static> {
        let (address, over) = (self.address()?, self.over.clone());
        Ok(move || {
            over.store(true, Ordering::Release);
            // A visit, so that it looks; where it is gone already there is nobody to end.
            let _ = TcpStream::connect_timeout(&address, PATIENCE);
        })
    }

    /// Answers clients until it is ended, some at a time. Who only keeps silent keeps nobody out; for whom the system starts no thread, is
    /// turned away.
    pub fn run(self) {
        self.answer_all(self.listener.incoming(), Builder::new);
    }

    fn answer_all(&self, incoming: impl Iterator<Item = io::Result<TcpStream>>, thread: impl Fn() -> Builder) {
        let metrics = self;
        let mut clients: Vec<Weak<Client>> = Vec::new();
        std::thread::scope(|threads| {
            for client in incoming {
                if metrics.over.load(Ordering::Acquire) {
                    return;
                }
                let Ok(client) = client else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                clients.retain(|client| client.strong_count() > 0);
                if clients.len() == CLIENTS_MAX {
                    let is_silent = |client: &Weak<Client>| client.upgrade().is_some_and(|client| client.is_silent());
                    let at = clients.iter().position(is_silent).unwrap_or(0);
                    if let Some(client) = clients.remove(at).upgrade() {
                        // Its thread ends by that.
                        let _ = client.stream.shutdown(Shutdown::Both);
                    }
                }
                let client = Arc::new(Client { stream: client, spoke: AtomicBool::new(false) });
                clients.push(Arc::downgrade(&client));
                let answer = move || {
                    // A client that goes away, or takes too long, has itself to blame.
                    let _ = metrics.answer(&client);
                };
                // Without a thread the client is gone with what would have answered it.
                let _ = thread().spawn_scoped(threads, answer);
            }
        });
    }

    fn answer(&self, client: &Client) -> io::Result<()> {
        let (spoke, mut client) = (&client.spoke, &client.stream);
        client.set_write_timeout(Some(PATIENCE))?;
        let mut request = vec![0; REQUEST_MAX];
        let mut length = 0;
        let began = Instant::now();
        while length < request.len() && !request[..length].windows(4).any(|end| end == b"\r\n\r\n") {
            // However little at a time it sends.
            let left = PATIENCE.saturating_sub(began.elapsed());
            if left.is_zero() || self.over.load(Ordering::Acquire) {
                return Ok(());
            }
            client.set_read_timeout(Some(left))?;
            match client.read(&mut request[length..]) {
                Ok(0) => break,
                Ok(bytes) => length += bytes,
                // A wait with a limit ends when the process was stopped and goes on (signal(7)).
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            spoke.store(true, Ordering::Release);
        }
        // What is asked of the page, behind the question mark, changes nothing: there is one page.
        let asked = request[..length].split(|byte| b" ?".contains(byte)).take(2).collect::<Vec<_>>();
        let (status, page) = match asked[..] {
            [b"GET" | b"HEAD", b"/metrics" | b"/"] => {
                // The figures are plain numbers: a thread that died while it held them has left them whole.
                let figures = *self.figures.lock().unwrap_or_else(PoisonError::into_inner);
                ("200 OK", figures.page() + &self.further.as_ref().map_or_else(String::new, |further| further()))
            }
            [b"GET" | b"HEAD", _] => ("404 Not Found", "the figures are at /metrics\n".into()),
            _ => ("400 Bad Request", "expected GET /metrics\n".into()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            page.len()
        );
        client.write_all(head.as_bytes())?;
        let body = if asked[0] == b"HEAD" { "" } else { &page };
        client.write_all(body.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer
    }

    #[test]
    fn the_page_has_every_figure_and_other_requests_their_status() {
        let figures = Shared::default();
        let metrics = Metrics::listen("127.0.0.1:0".parse().unwrap(), figures.clone()).expect("a free port");
        let metrics = metrics.with(Box::new(|| figure("more", "gauge", "More.", 9)));
        let (address, end) = (metrics.address().unwrap(), metrics.ender().unwrap());
        let thread = std::thread::spawn(|| metrics.run());
        *figures.lock().unwrap() = Figures { reads: 7, bytes_read: 28_672, ..Figures::default() };
        let page = get(address, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        let body = page.split_once("\r\n\r\n").expect("a body").1;
        assert_eq!(body.lines().filter(|line| !line.starts_with('#')).count(), LINES.len() + 1);
        assert!(body.ends_with("\n# TYPE more gauge\nmore 9\n"), "{body}");
        assert!(body.contains("\n# TYPE flashloom_reads_total counter\nflashloom_reads_total 7\n"), "{body}");
        assert!(body.contains("\nflashloom_read_bytes_total 28672\n"), "{body}");
        assert!(get(address, "GET /metrics?name=x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
        let head = get(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("\r\nContent-Length: ") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(get(address, "GET /else HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(get(address, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
        // However many say nothing, they keep nobody waiting.
        let silent: Vec<TcpStream> =
            (0..3 * CLIENTS_MAX).map(|_| TcpStream::connect(address).expect("it listens")).collect();
        let asked = Instant::now();
        assert!(get(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
        assert!(asked.elapsed() < PATIENCE);
        drop(silent);
        end();
        thread.join().expect("it ends");
    }

    #[test]
    fn a_system_that_lets_nobody_in_is_asked_now_and_then() {
        let metrics = Metrics::listen("127.0.0.1:0".parse().unwrap(), Shared::default()).expect("a free port");
        let (began, mut asked) = (Instant::now(), 0);
        let incoming = std::iter::from_fn(|| {
            asked += 1;
            (began.elapsed() < 10 * PAUSE).then(|| Err(io::Error::from_raw_os_error(24)))
        });
        metrics.answer_all(incoming, Builder::new);
        assert!(asked <= 11, "{asked} times");
    }

    #[test]
    fn a_client_for_whom_there_is_no_thread_is_turned_away_and_the_next_is_answered() {
        let metrics = Metrics::listen("127.0.0.1:0".parse().unwrap(), Shared::default()).expect("a free port");
        let address = metrics.address().unwrap();
        let ask = move || {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it is taken");
            let mut answer = String::new();
            // What was not read when it was turned away comes back as an error.
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        let client = std::thread::spawn(move || [ask(), ask()]);
        let started = std::cell::Cell::new(0);
        // No machine has the memory for such a stack.
        let first_refused = || {
            started.set(started.get() + 1);
            if started.get() == 1 { Builder::new().stack_size(1 << 50) } else { Builder::new() }
        };
        metrics.answer_all(metrics.listener.incoming().take(2), first_refused);
        let [turned_away, answered] = client.join().expect("both are over");
        assert_eq!(turned_away, "");
        assert!(answered.starts_with("HTTP/1.1 200 "), "{answered}");
    }
}
