import { UpstreamError } from '../../upstream/types.ts'
import { parseUpstreamMessage } from '../message/rpc.ts'
import type { EventSource } from '../sse/source.ts'
import type { CallContext, MessageLabel } from '../upstream/call.ts'
import { Correlator } from '../upstream/correlator.ts'
import type { Connection, LinkAnswer } from '../upstream/link.ts'
import { ServerProcess, type Command } from './process.ts'

/** A session without a message this long after `initialize` was not established. */
const ESTABLISH_MS = 60_000

/** Events of a connection. */
interface ConnectionEvents {
  onLog(line: string): void
  /** The process has ended. `isExpected`: because the connection was closed. */
  onExit(error: UpstreamError, isExpected: boolean): void
}

/** The process of one session with an MCP server that speaks stdio: one message in each line of its input and output. */
export class StdioConnection implements Connection {
  readonly #name: string
  readonly #process: ServerProcess
  readonly #messages = new Correlator()
  readonly #timer: NodeJS.Timeout
  /** `initialize` was answered. */
  #isStarted = false
  #isExpected = false

  constructor(name: string, command: Command, { onLog, onExit }: ConnectionEvents) {
    this.#name = name
    this.#timer = setTimeout(() => this.close(), ESTABLISH_MS).unref()
    this.#process = new ServerProcess(command, {
      onLine: (line) => this.#receive(line),
      onLog,
      onExit: (error) => {
        clearTimeout(this.#timer)
        this.#messages.fail(new UpstreamError(error.failure, `${name}: ${error.message}`, error))
        onExit(error, this.#isExpected)
      },
    })
  }

  /** Rejects with an UpstreamError if the program cannot be started. */
  get started(): Promise<void> {
    return this.#process.started
  }

  get isClosed(): boolean {
    return this.#messages.isClosed
  }

  async post({ exchange }: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer> {
    if (this.isClosed) throw new UpstreamError('reset', `the process of ${this.#name} has ended`)
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
    if (message.error !== undefined) this.close()
  }

  listen(): EventSource {
    return this.#messages.listen()
  }

  close(): void {
    if (this.#isExpected) return
    this.#isExpected = true
    clearTimeout(this.#timer)
    const error = new UpstreamError('cancelled', 'the session has ended')
    this.#messages.fail(error)
    this.#process.close(error)
  }
}
