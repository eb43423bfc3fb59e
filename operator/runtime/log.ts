import type { MessageCode } from '#api/messages/code.ts'

const levels = ['error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof levels)[number]

export const isLogLevel = (text: string): text is LogLevel => (levels as readonly string[]).includes(text)

/** `code` names the page of the message in docs/reference/messages. */
type ProblemFields = Readonly<Record<string, unknown>> & { readonly code: MessageCode }

/** Writes one JSON object per line. No Secret, token or request body is ever given to it. */
export interface Log {
  (level: 'error' | 'warn', message: string, fields: ProblemFields): void
  (level: 'info' | 'debug' | 'trace', message: string, fields?: Readonly<Record<string, unknown>>): void
  setLevel(level: LogLevel): void
  level(): LogLevel
}

export function createLog(level: LogLevel, write: (line: string) => void, now: () => Date = () => new Date()): Log {
  let current = level
  return Object.assign(
    (at: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      if (levels.indexOf(at) <= levels.indexOf(current)) write(`${JSON.stringify({ time: now().toISOString(), level: at, message, ...fields })}\n`)
    },
    {
      setLevel(next: LogLevel) {
        current = next
      },
      level: () => current,
    },
  )
}

export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
