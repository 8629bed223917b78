"""The chat on a real terminal: prompt, line editing, Ctrl-C, Ctrl-D."""
import os, pty, select, signal, subprocess, time
import pytest


class Terminal:
    def __init__(self, *command):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([str(c) for c in command], stdin=slave, stdout=slave, stderr=slave, close_fds=True, start_new_session=True, preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0),
                                        env={**os.environ, "TERM": "xterm"})
        os.close(slave)
        self.seen = b""

    def wait_for(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, (text, self.seen[-500:])
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    break
        at = self.seen.find(text)
        before, self.seen = self.seen[:at], self.seen[at + len(text) :]
        return before

    def send(self, data):
        os.write(self.master, data)


@pytest.fixture
def chat(build, smollm2):
    t = Terminal(build / "skipstone", "chat", "-m", smollm2, "-n", "3000", "--temperature", "0", "--logit-bias", "2=-100")  # it never ends by itself
    yield t
    t.process.kill()
    os.close(t.master)


def test_a_conversation_with_editing_interruption_and_end(chat):
    chat.wait_for(b"/help lists the commands")
    chat.wait_for(b"> ")
    time.sleep(0.5)  # the prompt is out before the terminal is set up for editing
    chat.send(b"/hexlp\x1b[D\x1b[D\x7f\x1b[C\x1b[C\r")  # a typing mistake, mended: two to the left, delete, and back
    chat.wait_for(b"forget the conversation")
    chat.wait_for(b"> ")
    chat.send(b"Count from one to one thousand in words.\r")
    chat.wait_for(b"\n")
    time.sleep(1.0)
    chat.send(b"\x03")  # stops the answer, not the program
    chat.wait_for(b"cancelled")
    chat.wait_for(b"> ")
    chat.send(b"/stats\r")
    chat.wait_for(b"1 answer, ")
    chat.wait_for(b"> ")
    time.sleep(0.5)
    chat.send(b"half a line")
    chat.wait_for(b"half a line")
    chat.send(b"\x03")  # drops the line
    chat.wait_for(b"> ")
    time.sleep(0.5)
    chat.send(b"\x04")
    assert chat.process.wait(timeout=20) == 0


def test_colors_mark_the_origin_of_tokens(chat):
    chat.wait_for(b"> ")
    chat.send(b"/colors\r")
    chat.wait_for(b"colors are on")
    chat.wait_for(b"> ")
    chat.send(b"/colors\r")
    chat.wait_for(b"colors are off")
    chat.send(b"/quit\r")
    assert chat.process.wait(timeout=20) == 0
