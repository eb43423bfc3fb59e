import type { Output } from './output.ts'
import type { Format, OptionName } from './options.ts'

/** Options of the command line, as given. */
export interface Options {
  readonly admin?: string | undefined
  readonly gateway?: string | undefined
  readonly kubeconfig?: string | undefined
  readonly dir?: string | undefined
  readonly filename?: string[] | undefined
  readonly namespace?: string | undefined
  readonly path?: string | undefined
  readonly host?: string | undefined
  readonly method?: string | undefined
  readonly header?: string[] | undefined
  readonly timeout?: string | undefined
  readonly client?: boolean | undefined
  readonly from?: string | undefined
  readonly port?: string | undefined
  readonly 'no-open'?: boolean | undefined
  readonly secret?: string | undefined
  readonly metadata?: string[] | undefined
  readonly expires?: string | undefined
  readonly write?: boolean | undefined
  readonly expand?: boolean | undefined
  readonly server?: string[] | undefined
  readonly pins?: string | undefined
  readonly by?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
  readonly file?: string | undefined
  readonly out?: string | undefined
  readonly types?: boolean | undefined
  readonly config?: string | undefined
  readonly duration?: string | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly listen?: string | undefined
  readonly clients?: string | undefined
  readonly mcp?: string | undefined
}

export interface Invocation {
  /** Arguments after the command. */
  readonly args: readonly string[]
  /** Arguments after `--`, for commands that run another program. */
  readonly program: readonly string[]
  readonly options: Options
  readonly env: Readonly<Record<string, string | undefined>>
  readonly output: Output
  /** Reads standard input to its end. */
  readInput(): Promise<string>
  /** Asks a question; undefined: standard input is not a terminal. */
  readonly ask: ((question: string) => Promise<string>) | undefined
}

/** Resolves with the exit status. Rejects with a UsageError, or an Error whose message is all the user needs. */
export type Command = (invocation: Invocation) => Promise<number>

/** One command, with all that help and completion print. The program of a command is loaded when it runs, so that the others start fast. */
export interface CommandEntry {
  /** One word, or two: `config dump`. */
  readonly name: string
  /** Arguments as in usage lines, such as `FROM [TO]`. */
  readonly arguments?: string
  readonly summary: string
  /** Sentences of the help page, beside the summary. */
  readonly details?: string
  /** Options that it takes beside `-o` and `-h`. */
  readonly options?: readonly OptionName[]
  /** Formats besides those of all commands. */
  readonly formats?: readonly Format[]
  readonly examples: readonly (readonly [purpose: string, line: string])[]
  /** Completions of its arguments: fixed words or names of files. */
  readonly completes?: readonly string[] | 'files'
  /** It compares: a failure has exit status 2, because 1 means a difference, as in diff(1). */
  readonly isComparison?: true
  load(): Promise<Command>
}

/** One resource and its status. */
export interface Row {
  readonly severity: 'error' | 'warning' | 'pending' | 'ok'
  readonly kind: string
  readonly namespace: string
  readonly name: string
  /** `Type=Status Reason: message` of every bad condition, or the problem of the pods; the worst first. */
  readonly conditions: readonly string[]
}
