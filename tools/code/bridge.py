# This side runs in the sandbox. It waits for a program on descriptor 3, runs it, and sends its
# calls on descriptor 4. A frame consists of the length of its JSON (4 bytes), the secret of this
# child (16), its number (4), and the JSON. Nothing here protects anything: the other side treats
# every frame as hostile.
def bridge():
    import builtins, math, os, sys
    from _thread import allocate_lock
    lock, os_read, os_write, leave, filename = allocate_lock(), os.read, os.write, os._exit, "<program>"
    seq = [0, 0]

    def coder():
        "the parts of json that are written in C: the module takes as long to import as all the rest of the start"
        try:
            from _json import encode_basestring, make_encoder, make_scanner

            class Context:
                strict, object_hook, object_pairs_hook, parse_float, parse_int, parse_constant, memo = True, None, None, float, int, float, {}

            def default(x):
                raise TypeError("Object of type %s is not JSON serializable" % type(x).__name__)

            def encode(x, join="".join):
                return join(make_encoder({}, default, encode_basestring, None, ":", ",", False, False, False)(x, 0))

            scan, sample = make_scanner(Context), {"a": [1, 2.5, None, True, "\u00e9\n"]}
            if encode(sample) == '{"a":[1,2.5,null,true,"\u00e9\\n"]}' and scan(encode(sample), 0)[0] == sample:
                return encode, lambda text: scan(text, 0)[0]
        except Exception:
            pass
        import json
        return json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode, json.JSONDecoder().decode

    encode, decode = coder()

    def read(n):
        parts = []
        while n > 0:
            b = os_read(3, min(n, 1 << 20))
            if not b:
                leave(0)
            parts.append(b)
            n -= len(b)
        return b"".join(parts)

    def receive():
        n = int.from_bytes(read(4), "big")
        key, number = read(16), int.from_bytes(read(4), "big")
        seq[0] += 1
        if number != seq[0]:
            leave(0)
        return key, decode(str(read(n), "utf-8"))

    from select import select
    if not select([3], [], [], 0)[0]:  # idle time: import what many programs need
        import json, random, re
    key, hello = receive()
    limit, seed = hello["output"], hello["seed"]

    class TooLarge(ValueError):
        pass

    def send(data):
        seq[1] += 1
        frame = memoryview(len(data).to_bytes(4, "big") + key + seq[1].to_bytes(4, "big") + data)
        while frame:
            frame = frame[os_write(4, frame):]

    def form(what, x):
        try:
            return encode(x).encode("utf-8", "backslashreplace")
        except (TypeError, ValueError) as e:
            raise type(e)("%s takes a value with a JSON form (dict with text keys, list, text, number, True, False, None): %s" % (what, e)) from None

    class ToolError(RuntimeError):
        "A call that failed. tool and outcome say which and how."

        def __init__(self, text, tool="", outcome="error"):
            super().__init__(text)
            self.tool, self.outcome = tool, outcome

    ToolError.__module__ = "__main__"

    def do(what, calls):
        for name, args in calls:
            if not isinstance(name, str):
                raise TypeError("%s: the tool's name is text, not %s" % (what, type(name).__name__))
        data = b'{"calls":' + form(what, [{"name": n, "args": {} if a is None else a} for n, a in calls]) + b"}"
        if len(data) > hello["frame"]:
            raise TooLarge("%s: the arguments have %d bytes, at most %d can be sent" % (what, len(data), hello["frame"]))
        with lock:
            send(data)
            answer = receive()[1]
            passed(answer["took"])
            return answer["replies"]

    def value(r):
        return ToolError(r["error"], r["tool"], r["outcome"]) if "error" in r else r["value"]

    def call_tool(name, args=None, **more):
        r = value(do("call_tool", [(name, {**(args or {}), **more} if more else args)])[0])
        if isinstance(r, ToolError):
            raise r
        return r

    def try_call(name, args=None, **more):
        r = value(do("try_call", [(name, {**(args or {}), **more} if more else args)])[0])
        if isinstance(r, ToolError):
            return {"ok": False, "error": str(r), "outcome": r.outcome}
        return {"ok": True, "value": r}

    def call_tools_parallel(calls):
        pairs = []
        for c in calls:
            if isinstance(c, dict) and "name" in c:
                pairs.append((c["name"], c.get("args")))
            elif isinstance(c, (tuple, list)) and len(c) in (1, 2):
                pairs.append((c[0], c[1] if len(c) == 2 else None))
            else:
                raise TypeError('call_tools_parallel takes a list of (name, args)')
        return [value(r) for r in do("call_tools_parallel", pairs)] if pairs else []

    def set_result(x):
        data = form("set_result", x)
        if len(data) > limit:
            raise TooLarge("the result has %d bytes as JSON, and at most %d are returned; set what matters of it" % (len(data), limit))
        with lock:
            send(b'{"result":' + data + b"}")

    class Seeded:
        "random gives the same numbers, and datetime and uuid the same time, whenever the program is run again"

        def find_spec(self, name, path=None, target=None):
            if name not in settle:
                return None
            from importlib.machinery import PathFinder
            spec = PathFinder.find_spec(name, path)
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                settle[name](module)

            spec.loader.exec_module = exec_module
            return spec

    clock = [hello["since"], 0]  # nanoseconds: when the program first started, and the time since then

    def passed(n):
        clock[1] += n
        return clock[1]

    import time
    real_sleep = time.sleep

    def sleep(seconds):
        real_sleep(seconds)
        passed(int(seconds * 1e9))

    def now():
        return clock[0] + passed(1000)

    def at(f):
        return lambda *given: f(*given) if given and given[0] is not None else f(now() / 1e9)

    time.sleep, time.time, time.time_ns = sleep, lambda: now() / 1e9, now
    time.monotonic = time.perf_counter = time.process_time = lambda: passed(1000) / 1e9
    time.monotonic_ns = time.perf_counter_ns = time.process_time_ns = lambda: passed(1000)
    time.gmtime, time.localtime, time.ctime = at(time.gmtime), at(time.localtime), at(time.ctime)
    format_time, format_tuple = time.strftime, time.asctime
    time.strftime = lambda form, *t: format_time(form, *(t or (time.localtime(),)))
    time.asctime = lambda *t: format_tuple(*(t or (time.localtime(),)))

    def fixed(module):
        "datetime has a clock of its own, in C: its types are replaced by ones that read this one"
        base, day = module.datetime, module.date

        class Kind(type):
            def __instancecheck__(cls, x):
                return isinstance(x, cls.__base__)

            def __subclasscheck__(cls, c):
                return issubclass(c, cls.__base__)

        class datetime(base, metaclass=Kind):
            @classmethod
            def now(cls, tz=None):
                return cls.fromtimestamp(now() / 1e9, tz)

            @classmethod
            def utcnow(cls):
                return cls.utcfromtimestamp(now() / 1e9)

            @classmethod
            def today(cls):
                return cls.now()

        class date(day, metaclass=Kind):
            @classmethod
            def today(cls):
                return cls.fromtimestamp(now() / 1e9)

        for c in (datetime, date):
            c.__module__, c.__qualname__ = "datetime", c.__name__
        module.datetime, module.date = datetime, date

    from _random import Random
    entropy = Random(seed)
    os.urandom = lambda n: entropy.getrandbits(8 * n).to_bytes(n, "big") if n else b""
    settle = {"random": lambda module: module.seed(seed), "datetime": fixed, "uuid": lambda module: setattr(module, "_generate_time_safe", None)}
    for name in settle:
        if name in sys.modules:
            settle[name](sys.modules[name])
    sys.meta_path.insert(0, Seeded())
    sys.argv = ["program"]
    os.dup2(1, 2)
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    sys.stderr = sys.stdout

    def told(e):
        try:
            text = str(e)
        except BaseException:
            text = ""
        lines, tb = [], e.__traceback__
        while tb is not None:
            if tb.tb_frame.f_code.co_filename == filename:
                lines.append([tb.tb_lineno, tb.tb_frame.f_code.co_name])
            tb = tb.tb_next
        return {"type": type(e).__name__, "message": text[:2000], "lines": lines[-8:]}

    end = {"end": "ok"}
    try:
        code = compile(hello["code"], filename, "exec", dont_inherit=True)
    except SyntaxError as e:
        end = {"end": "syntax", "message": str(e.msg), "lines": [[e.lineno or 0, ""]]}
    except BaseException as e:
        end = {"end": "syntax", "message": str(e), "lines": []}
    else:
        scope = {"__name__": "__main__", "__builtins__": builtins, "math": math, "call_tool": call_tool, "try_call": try_call,
                 "call_tools_parallel": call_tools_parallel, "set_result": set_result, "ToolError": ToolError, "exit": sys.exit, "quit": sys.exit}
        if "json" in hello["code"]:
            import json
            scope["json"] = json
        try:
            exec(code, scope)
        except SystemExit as e:
            status = e.code
            if status is not None and not isinstance(status, int):
                print(status)
                status = 1
            end = {"end": "exit", "status": int(status or 0)}
        except TooLarge as e:
            end = {"end": "too_large", **told(e)}
        except MemoryError as e:
            scope.clear()
            end = {"end": "memory", **told(e)}
        except BaseException as e:
            end = {"end": "error", **told(e)}
    try:
        sys.stdout.flush()
    except BaseException:
        pass
    with lock:
        try:
            data = encode(end).encode("utf-8", "backslashreplace")
        except BaseException:
            data = b'{"end":"ok"}' if end == {"end": "ok"} else b'{"end":"error","type":"Exception","message":"","lines":[]}'
        send(data)
    leave(0)


bridge()
