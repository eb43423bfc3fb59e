import { once } from 'node:events'
import { connect } from 'node:net'

/** Sends requests on one connection one after another and records the longest wait for a response. */
export interface Probe {
  /** Value of `x-version` in the last response. */
  version(): string | undefined
  /** `performance.now()` at which that version was first seen. */
  versionAtMs(): number
  /** Includes the wait for a response that has not arrived. */
  longestPauseMs(): number
  /** No request has waited for longer than 20 ms. */
  isIdle(): boolean
  resetPause(): void
  /** Responses other than 200, and closed connections. */
  failures(): number
  stop(): void
}

const SPACING_MS = 1

/** Starts a probe that sends GETs to a path on loopback. */
export async function startProbe(port: number, path: string): Promise<Probe> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const request = `GET ${path} HTTP/1.1\r\nhost: probe\r\n\r\n`
  const state = { version: undefined as string | undefined, versionAtMs: 0, longestPauseMs: 0, failures: 0, sentAtMs: 0, isWaiting: false, isStopped: false }
  let received = ''
  const sendNext = () => {
    if (state.isStopped) return
    state.sentAtMs = performance.now()
    state.isWaiting = true
    socket.write(request)
  }
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk
    const end = received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = received.slice(0, end)
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    if (received.length < end + 4 + length) return
    received = received.slice(end + 4 + length)
    const now = performance.now()
    state.isWaiting = false
    state.longestPauseMs = Math.max(state.longestPauseMs, now - state.sentAtMs)
    if (!head.startsWith('HTTP/1.1 200')) state.failures++
    const version = /^x-version: *(\S+)/im.exec(head)?.[1]
    if (version !== state.version) {
      state.version = version
      state.versionAtMs = now
    }
    setTimeout(sendNext, SPACING_MS)
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    if (!state.isStopped) state.failures++
  })
  sendNext()
  const waitMs = (): number => (state.isWaiting ? performance.now() - state.sentAtMs : 0)
  return {
    version: () => state.version,
    versionAtMs: () => state.versionAtMs,
    longestPauseMs: () => Math.max(state.longestPauseMs, waitMs()),
    isIdle: () => waitMs() < 20,
    resetPause: () => void (state.longestPauseMs = 0),
    failures: () => state.failures,
    stop() {
      state.isStopped = true
      socket.destroy()
    },
  }
}
