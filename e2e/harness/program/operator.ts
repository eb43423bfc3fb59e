import { fileURLToPath } from 'node:url'
import { startProgram, tailOf, type Program } from './program.ts'

/** Path of the program. */
export const OPERATOR_MAIN = fileURLToPath(new URL('../../../operator/main.ts', import.meta.url))

/** A Gateway in the `config` event. */
export interface GatewaySummary {
  readonly namespace: string
  readonly name: string
  readonly listeners: readonly ListenerSummary[]
  /** Files with the settings of its data plane: `config` for `-f`, `env` for `--env-file`. */
  readonly settings?: { readonly config: string; readonly env: string; readonly version: string }
}

/** A listener in the `config` event. */
export interface ListenerSummary {
  readonly name: string
  readonly port: number
  readonly protocol: string
  readonly hostname?: string
  /** Number of route rules. */
  readonly routes?: number
}

/** Position in a file of the directory, if known. */
export interface Place {
  readonly file?: string | undefined
  readonly line?: number
  readonly column?: number
}

/** A condition that reports a problem. */
export interface ConditionEvent extends Place {
  readonly event: 'condition'
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  /** Another condition reports the cause. */
  readonly isConsequence?: boolean
}

interface ErrorEvent extends Place {
  readonly event: 'error'
  readonly message: string
}

interface WarningEvent extends Place {
  readonly event: 'warning'
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly message: string
}

interface SolvedEvent {
  readonly event: 'solved'
  readonly problem: string
}

/** One line of the operator's standard output in directory mode (e2e/harness/README.md). */
export type OperatorEvent =
  | { readonly event: 'listening'; readonly address: string }
  | { readonly event: 'config'; readonly gateways: readonly GatewaySummary[] }
  | ErrorEvent
  | ConditionEvent
  | WarningEvent
  | SolvedEvent

/** A running operator. */
export interface Operator {
  readonly program: Program
  /** `host:port` of the config stream. */
  readonly address: string
  /** Every event so far, oldest first. */
  readonly events: readonly OperatorEvent[]
  readonly gateways: () => readonly GatewaySummary[]
  onEvent(listener: (event: OperatorEvent) => void): void
  stop(): Promise<void>
}

export interface OperatorOptions {
  readonly directory: string
  readonly env?: Record<string, string>
  /** Options for Node. */
  readonly nodeArgs?: readonly string[]
  readonly timeoutMs?: number
}

/** Starts the operator on a directory and waits until it serves its first config. Rejects with the operator's error message if it exits before. */
export async function startOperator(options: OperatorOptions): Promise<Operator> {
  const program = startProgram({
    name: 'operator',
    args: [...(options.nodeArgs ?? []), OPERATOR_MAIN, '--dir', options.directory, '--listen', '127.0.0.1:0'],
    ...(options.env === undefined ? {} : { env: options.env }),
  })
  const events: OperatorEvent[] = []
  const listeners = new Set<(event: OperatorEvent) => void>()
  let address: string | undefined
  let gateways: readonly GatewaySummary[] | undefined

  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`the operator served no config in time\n${tailOf(program.lines)}`))
      void program.stop()
    }, options.timeoutMs ?? 60_000)
    void program.exited.then(() => {
      clearTimeout(timer)
      reject(new Error(lastError(program) ?? 'the operator exited at start'))
    })
    program.onLine((line) => {
      const event = line.stream === 'stdout' ? parseEvent(line.text) : undefined
      if (event === undefined) return
      events.push(event)
      if (event.event === 'listening') address = event.address
      if (event.event === 'config') gateways = event.gateways
      for (const listener of listeners) listener(event)
      if (address === undefined || gateways === undefined) return
      clearTimeout(timer)
      resolve({
        program,
        address,
        events,
        gateways: () => gateways ?? [],
        onEvent: (listener) => void listeners.add(listener),
        stop: async () => void (await program.stop()),
      })
    })
  })
}

/** The last line that a program wrote to standard error, or the message of an uncaught exception: the reason why it exited. */
export function lastError(program: Program): string | undefined {
  const said = program.lines.filter((line) => line.stream === 'stderr' && line.text.trim() !== '').map((line) => line.text)
  if (said.at(-1)?.startsWith('Node.js v') !== true) return said.at(-1)
  return said.findLast((text) => /^(Uncaught )?\w*Error\b/.test(text)) ?? said.at(-1)
}

function parseEvent(text: string): OperatorEvent | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const value = JSON.parse(text) as OperatorEvent
    return typeof value.event === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
