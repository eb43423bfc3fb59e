import type { Output } from './output.ts'

/** Options of the command line, as given. */
interface Options {
  readonly admin?: string | undefined
  readonly gateway?: string | undefined
  readonly kubeconfig?: string | undefined
  readonly dir?: string | undefined
  readonly namespace?: string | undefined
  readonly path?: string | undefined
  readonly host?: string | undefined
  readonly method?: string | undefined
  readonly header?: string[] | undefined
  readonly timeout?: string | undefined
}

export interface Invocation {
  /** Arguments after the command. */
  readonly args: readonly string[]
  readonly options: Options
  readonly env: Readonly<Record<string, string | undefined>>
  readonly output: Output
}

/** Resolves with the exit status. Rejects with a UsageError, or an Error whose message is all the user needs. */
export type Command = (invocation: Invocation) => Promise<number>

/** One resource and its status. */
export interface Row {
  readonly severity: 'error' | 'warning' | 'pending' | 'ok'
  readonly kind: string
  readonly namespace: string
  readonly name: string
  /** `Type=Status Reason: message` of every bad condition, or the problem of the pods; the worst first. */
  readonly conditions: readonly string[]
}
