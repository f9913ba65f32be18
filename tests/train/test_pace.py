"""The loop is never further ahead of the device than it may be."""

from gnn_ibp.train.pace import MAX_AHEAD, Pace


class Device:
    """Counts the events that were recorded and those that were waited for."""

    def __init__(self) -> None:
        self.recorded, self.waited = 0, []

    def event(self) -> "Event":
        self.recorded += 1
        return Event(self, self.recorded)


class Event:
    def __init__(self, device: Device, number: int) -> None:
        self.device, self.number = device, number

    def wait(self) -> None:
        self.device.waited.append(self.number)


def test_each_minibatch_waits_for_the_one_some_before() -> None:
    device = Device()
    pace = Pace(device)
    for at in range(1, 11):
        pace.step()
        assert device.recorded == at
        assert device.waited == list(range(1, at - MAX_AHEAD + 1))


def test_end_waits_for_the_last_minibatch() -> None:
    device = Device()
    pace = Pace(device)
    for _ in range(5):
        pace.step()
    pace.finish()
    assert device.waited[-1] == 5
    before = list(device.waited)
    pace.finish()
    assert device.waited == before


def test_nothing_is_waited_for_on_the_cpu() -> None:
    pace = Pace(None)
    for _ in range(10):
        pace.step()
    pace.finish()
