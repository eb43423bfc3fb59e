import { UpstreamError } from '../../../net/upstream/types.ts'
import { parseUpstreamMessage } from '../message/rpc.ts'
import type { EventSource } from '../sse/source.ts'
import type { CallContext, MessageLabel } from '../upstream/call.ts'
import { Correlator } from '../upstream/correlator.ts'
import type { Connection, LinkAnswer } from '../upstream/link.ts'
import { ServerProcess, type Command } from './process.ts'
import { hold, release, touch } from './shares.ts'

/** A session without a message this long after `initialize` was not established. */
const ESTABLISH_MS = 60_000

/** Events of a connection. */
interface ConnectionEvents {
  onLog(line: string): void
  /** The process has ended. `isExpected`: because the connection was closed. */
  onExit(error: UpstreamError, isExpected: boolean): void
  /** The server answered `initialize` with a result. */
  onStarted(): void
}

/** The process of one session with an MCP server that speaks stdio: one message in each line of its input and output. */
export class StdioConnection implements Connection {
  readonly #name: string
  readonly #process: ServerProcess
  readonly #messages = new Correlator()
  readonly #timer: NodeJS.Timeout
  readonly #events: ConnectionEvents
  /** `initialize` was answered. */
  #isStarted = false
  #isExpected = false

  /** `client`: whom the session is counted for. */
  constructor(name: string, command: Command, client: string, events: ConnectionEvents) {
    this.#name = name
    this.#events = events
    this.#timer = setTimeout(() => this.close(), ESTABLISH_MS).unref()
    this.#process = new ServerProcess(command, {
      onLine: (line) => this.#receive(line),
      onLog: events.onLog,
      onExit: (error) => {
        clearTimeout(this.#timer)
        release(this)
        this.#messages.fail(new UpstreamError(error.failure, `${name}: ${error.message}`, error))
        events.onExit(error, this.#isExpected)
      },
    })
    hold(this, client)
  }

  /** Rejects with an UpstreamError if the program cannot be started. */
  get started(): Promise<void> {
    return this.#process.started
  }

  get isClosed(): boolean {
    return this.#messages.isClosed
  }

  /** Whether no request waits for its response. Sessions that are not started wait for that of `initialize`. */
  get isIdle(): boolean {
    return this.#isStarted && this.#messages.pendingCount === 0
  }

  async post({ exchange }: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer> {
    if (this.isClosed) throw new UpstreamError('reset', `the process of ${this.#name} has ended`)
    touch(this)
    const { method, id } = label
    if (method !== 'initialize') clearTimeout(this.#timer)
    const answer = id === undefined || method === undefined ? undefined : this.#messages.expect(id, label)
    try {
      // Line breaks in JSON are white space.
      this.#process.write(text.replaceAll(/[\r\n]+/g, ' '))
    } catch (error) {
      answer?.cancel()
      throw error
    }
    if (answer === undefined) return { kind: 'accepted' }
    exchange.onAbort(() => {
      answer.cancel()
      // The client has no session yet, so it cannot end it.
      if (!this.#isStarted) this.close()
    })
    return { kind: 'events', events: answer }
  }

  #receive(line: string): void {
    const message = this.#isStarted ? undefined : parseUpstreamMessage(line)
    this.#messages.dispatch({ data: line })
    if (message === undefined || message.method !== undefined) return
    this.#isStarted = true
    // There will be no session.
    if (message.error !== undefined) return this.close()
    this.#events.onStarted()
  }

  listen(): EventSource {
    return this.#messages.listen()
  }

  /** Requests that wait for a response fail with `error`. */
  close(error = new UpstreamError('cancelled', 'the session has ended')): void {
    if (this.#isExpected) return
    this.#isExpected = true
    release(this)
    clearTimeout(this.#timer)
    this.#messages.fail(error)
    this.#process.close(error)
  }
}
