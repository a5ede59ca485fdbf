# oracle_gdb.py - run by gdb: the stack of each block of a size from 70,000 to 70,999, as oracle.h writes it down.
import gdb

for command in ("set pagination off", "set confirm off", "set breakpoint pending on", "set style enabled off",
                "set backtrace past-main on", "set backtrace past-entry on",
                "handle SIGUSR1 nostop noprint pass", "handle SIGILL nostop noprint pass"):
    gdb.execute(command)
try:
    gdb.execute("set debuginfod enabled off")
except gdb.error:
    pass


def mappings():
    found, bases = [], {}
    for line in gdb.execute("info proc mappings", to_string=True).splitlines():
        words = line.split()
        if len(words) > 4 and words[-1].startswith("/"):
            low, high, path = int(words[0], 16), int(words[1], 16), words[-1]
            bases[path] = min(low, bases.get(path, low))
            found.append((low, high, path))
    return found, bases


class Stop(gdb.Breakpoint):
    def stop(self):
        size = int(gdb.parse_and_eval("$rdi")) & 0xffffffffffffffff
        if not 70000 <= size < 71000:
            return False
        found, bases = mappings()
        line, frame = "MARK %d" % size, gdb.newest_frame().older()
        while frame is not None and frame.is_valid():
            # Not the frames that stand in no place of the stack.
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                pc = frame.pc()
                path = next((path for low, high, path in found if low <= pc < high), "?")
                line += " %s %x" % (path, pc - bases.get(path, 0))
            frame = frame.older()
        print(line, flush=True)
        return False


Stop("malloc")
Stop("operator new(unsigned long)")
gdb.execute("run")
