# Programs that take more than a bound in a way that a sum can miss. Each try_ function calls took
# with what it has taken: bytes, or files. The program prints the sum, and OUT at twice the bound. A
# comment after the name says what the bound is of: memory, disk or files; and whether the program
# needs strict, or a control group to be bounded. None does harm: what it takes ends with it, but for
# the files in its folder.
import ctypes, mmap, os, signal, socket, struct, sys, threading, time

work, bound = sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
sum, held = 0, []

def took(n):
    global sum
    sum += n
    print(sum, flush=True)
    if sum >= 2 * bound:
        print("OUT", flush=True)
        os._exit(0)
    time.sleep(0.002)

def fill(s):
    s.setblocking(False)
    n = 0
    try:
        while True: n += s.send(bytes(4096))
    except BlockingIOError:
        took(n)

def pairs(kind):
    while True:
        a, b = socket.socketpair(socket.AF_UNIX, kind)
        held.extend((a, b)); fill(a); fill(b)

def file(size, number=[0]):
    number[0] += 1
    name = work + "/f%d" % number[0]
    fd = os.open(name, os.O_RDWR | os.O_CREAT)
    os.write(fd, bytes(size))
    os.unlink(name)
    return fd

def queued(fd, s):
    s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd))])
    os.close(fd)

# Ends the first thread; do goes on in another.
def without_first_thread(do):
    threading.Thread(target=do).start()
    libc.syscall(ctypes.c_long(60), ctypes.c_long(0))

def try_stream_sockets(): # memory, strict
    pairs(socket.SOCK_STREAM)
def try_datagram_sockets(): # memory, strict
    pairs(socket.SOCK_DGRAM)
def try_packet_sockets(): # memory, strict
    pairs(socket.SOCK_SEQPACKET)
def try_sockets_of_children(): # memory, strict
    r, w = os.pipe()
    for _ in range(8):
        if os.fork() == 0:
            for _ in range(100):
                a, b = socket.socketpair()
                held.extend((a, b)); a.setblocking(False); n = 0
                try:
                    while True: n += a.send(bytes(4096))
                except BlockingIOError: os.write(w, struct.pack("i", n))
            time.sleep(60)
    while True: took(struct.unpack("i", os.read(r, 4))[0])
def try_sockets_without_a_name(): # memory, strict
    # each is held only by the queue of the one before
    outer = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    while True:
        for _ in range(8):
            a, b = socket.socketpair()
            a.setblocking(False); n = 0
            try:
                while True: n += a.send(bytes(4096))
            except BlockingIOError: pass
            outer[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", b.fileno()))])
            a.close(); b.close(); took(n)
        held.append(outer)
        outer = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
def try_sockets_not_accepted(): # memory, strict
    while True:
        l = socket.socket(socket.AF_UNIX); l.bind("\0pawl%d-%d" % (os.getpid(), len(held))); l.listen(64)
        held.append(l)
        for _ in range(32):
            c = socket.socket(socket.AF_UNIX); c.connect(l.getsockname()); held.append(c); fill(c)
def try_memory_without_first_thread(): # memory, strict
    def do():
        while True: held.append(bytearray(os.urandom(1 << 20))); took(1 << 20)
    without_first_thread(do)
def try_memory_of_orphans(): # memory, strict
    r, w = os.pipe()
    for _ in range(16):
        if os.fork() == 0:
            if os.fork(): os._exit(0)
            for _ in range(10): held.append(bytearray(os.urandom(1 << 20))); os.write(w, b"x"); time.sleep(0.02)
            time.sleep(60)
    while os.read(r, 1): took(1 << 20)
def try_temporary_files(): # memory, strict, group
    n = 0
    while True:
        n += 1
        with open("/tmp/pawl-sum-%d" % n, "wb") as f: f.write(bytes(1 << 20))
        if os.getenv("OUTSIDE"): os.unlink("/tmp/pawl-sum-%d" % n)
        took(1 << 20)
def try_page_tables(): # memory, strict, group
    # a page in each table: half of what it takes is not its own
    r, w = os.pipe()
    for _ in range(40):
        if os.fork() == 0:
            m = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            m.madvise(15) # no huge pages
            for i in range(512):
                m[i << 21] = 1
                if i % 128 == 127: os.write(w, b"x")
            time.sleep(60)
    while os.read(r, 1): took(1 << 20)

def try_mapped(): # disk
    while True:
        fd = file(4 << 20); held.append(mmap.mmap(fd, 4 << 20)); os.close(fd); took(4 << 20)
def try_mapped_in_part(): # disk
    while True:
        fd = file(4 << 20); held.append(mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE)); os.close(fd); took(4 << 20)
def try_mapped_by_child(): # disk
    while True:
        fd = file(4 << 20)
        r, w = os.pipe()
        if os.fork() == 0:
            m = mmap.mmap(fd, 4 << 20); os.close(fd); os.close(r); os.write(w, b"x"); time.sleep(60)
        os.read(r, 1); os.close(r); os.close(w); os.close(fd); took(4 << 20)
def try_queued(): # disk
    a, b = socket.socketpair(); held.extend((a, b))
    while True: queued(file(4 << 20), a); took(4 << 20)
def try_queued_in_queue(): # disk
    a, b = socket.socketpair(); held.extend((a, b))
    while True:
        c, d = socket.socketpair()
        queued(file(4 << 20), c); queued(d.detach(), a); c.close(); took(4 << 20)
def try_queued_not_accepted(): # disk, strict
    l = socket.socket(socket.AF_UNIX); l.bind("\0pawl%d" % os.getpid()); l.listen(64); held.append(l)
    while True:
        c = socket.socket(socket.AF_UNIX); c.connect(l.getsockname()); held.append(c)
        queued(file(4 << 20), c); took(4 << 20)
def try_descriptors_without_first_thread(): # disk
    def do():
        while True: held.append(file(4 << 20)); took(4 << 20)
    without_first_thread(do)
def try_descriptors_undumpable(): # disk
    libc.prctl(4, 0, 0, 0, 0)
    while True: held.append(file(4 << 20)); took(4 << 20)

def each(make):
    n = 0
    while True:
        for _ in range(20): n += 1; make(work + "/%d" % n)
        took(20)
def try_empty_files(): # files
    each(lambda p: os.close(os.open(p, os.O_CREAT | os.O_WRONLY)))
def try_folders(): # files
    each(os.mkdir)
def try_links(): # files
    each(lambda p: os.symlink("x" * 20, p))
def try_pipes(): # files
    each(os.mkfifo)
def try_socket_files(): # files, strict
    def make(p):
        s = socket.socket(socket.AF_UNIX); s.bind(p); s.close()
    each(make)
def try_files_below(): # files
    n = 0
    while True:
        n += 1; d = work + "/d%d" % n; os.mkdir(d)
        for i in range(19): os.close(os.open(d + "/%d" % i, os.O_CREAT | os.O_WRONLY))
        took(20)

globals()["try_" + sys.argv[1]]()
time.sleep(60)
