import { execFile } from 'node:child_process'

/** Reports the state of this process to systemd. */
export interface ServiceManager {
  /** The start is complete. From then on the watchdog is told that the event loop runs. */
  ready(): void
  /** The process is ending. */
  stopping(): void
}

/** systemd's own program: Node has no datagram sockets of Unix, which the protocol uses. */
const NOTIFY = 'systemd-notify'

/**
 * The service manager of a unit with `Type=notify` and `NotifyAccess=all`; undefined elsewhere. With `WatchdogSec`, systemd restarts a process that does not report for that time:
 * this one reports twice in it.
 */
export function notifyManager(env: Readonly<Record<string, string | undefined>>): ServiceManager | undefined {
  if (env['NOTIFY_SOCKET'] === undefined) return undefined
  // A message that is lost is made up for by the next one, or by the timeout of the unit.
  const notify = (...args: readonly string[]): void => void execFile(NOTIFY, [...args], () => undefined)
  const watchdogMs = Number(env['WATCHDOG_USEC'] ?? 0) / 1000
  return {
    ready() {
      notify('--ready')
      if (watchdogMs > 0) setInterval(() => notify('WATCHDOG=1'), watchdogMs / 2).unref()
    },
    stopping: () => notify('STOPPING=1'),
  }
}
