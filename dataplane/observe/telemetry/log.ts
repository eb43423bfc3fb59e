import type { MessageCode } from '#api/messages/code.ts'
import { REDACTED } from '#api/names.ts'
import { isSensitiveName } from '#api/secret-fields.ts'
import { Redacted, redactText, setSensitiveHeaders } from './redact.ts'
import { formatTime, toEpochMs } from '../../runtime/time.ts'
import type { LineWriter } from './writer.ts'

/** In order of verbosity. `off` disables a scope. */
const logLevels = ['off', 'error', 'warn', 'info', 'debug', 'trace'] as const
type LogLevel = (typeof logLevels)[number]
export type LogFormat = 'text' | 'json'
type LogFields = Readonly<Record<string, unknown>>
/** `code` names the page of the message in docs/reference/messages. */
type ProblemFields = LogFields & { readonly code: MessageCode }

/** Writes log lines of one scope, which is named after its module: `config`, `upstream`, `config/stream`. */
export interface Logger {
  error(message: string, fields: ProblemFields): void
  warn(message: string, fields: ProblemFields): void
  info(message: string, fields?: LogFields): void
  debug(message: string, fields?: LogFields): void
  trace(message: string, fields?: LogFields): void
  /** For callers whose fields are expensive to compute. */
  isEnabled(level: LogLevel): boolean
}

export interface Logging {
  readonly format: LogFormat
  readonly writer: LineWriter
  /** The level specification in force; see `parseLevels`. */
  readonly level: string
  logger(scope: string): Logger
  /** Sets the levels of all loggers, existing ones included. Throws a LogLevelError. */
  setLevel(spec: string): void
  /** Restores the level that the process started with. */
  reset(): void
}

/** An invalid level specification; the message names the invalid part. */
export class LogLevelError extends Error {}

export interface Levels {
  readonly base: LogLevel
  readonly scopes: ReadonlyMap<string, LogLevel>
}

/** Parses `info`, `config=debug`, or a comma-separated mix of both; the default is `info`. Error messages start with `where`. */
export function parseLevels(spec: string, where = ''): Levels {
  let base: LogLevel = 'info'
  const scopes = new Map<string, LogLevel>()
  for (const part of spec.split(',')) {
    const [first = '', second, ...more] = part.split('=').map((text) => text.trim())
    const level = (second ?? first).toLowerCase()
    if (!isLogLevel(level) || more.length > 0 || (second !== undefined && !/^[\w./-]+$/.test(first)))
      throw new LogLevelError(`${where}bad log level ${JSON.stringify(part)}: want one of ${logLevels.join(', ')}, or module=level pairs separated by commas`)
    if (second === undefined) base = level
    else scopes.set(first, level)
  }
  return { base, scopes }
}

function isLogLevel(text: string): text is LogLevel {
  return (logLevels as readonly string[]).includes(text)
}

/** Rank of the level for a scope: the longest named scope that is it or an ancestor of it wins. */
function rankOf(levels: Levels, scope: string): number {
  for (let name = scope; ; name = name.slice(0, name.lastIndexOf('/'))) {
    const level = levels.scopes.get(name)
    if (level !== undefined) return logLevels.indexOf(level)
    if (!name.includes('/')) return logLevels.indexOf(levels.base)
  }
}

class ScopeLogger implements Logger {
  rank: number
  readonly scope: string
  readonly #emit: (level: LogLevel, scope: string, message: string, fields: LogFields | undefined) => void

  constructor(scope: string, rank: number, emit: (level: LogLevel, scope: string, message: string, fields: LogFields | undefined) => void) {
    this.scope = scope
    this.rank = rank
    this.#emit = emit
  }

  error(message: string, fields: ProblemFields): void {
    if (this.rank >= 1) this.#emit('error', this.scope, message, fields)
  }
  warn(message: string, fields: ProblemFields): void {
    if (this.rank >= 2) this.#emit('warn', this.scope, message, fields)
  }
  info(message: string, fields?: LogFields): void {
    if (this.rank >= 3) this.#emit('info', this.scope, message, fields)
  }
  debug(message: string, fields?: LogFields): void {
    if (this.rank >= 4) this.#emit('debug', this.scope, message, fields)
  }
  trace(message: string, fields?: LogFields): void {
    if (this.rank >= 5) this.#emit('trace', this.scope, message, fields)
  }
  isEnabled(level: LogLevel): boolean {
    return this.rank >= logLevels.indexOf(level)
  }
}

export interface LoggingOptions {
  writer: LineWriter
  /** PROXY_LOG or `config.logging.level`; default `info`. An invalid one throws a LogLevelError. */
  level?: string | undefined
  format?: LogFormat | undefined
  /** `config.logging.sensitiveHeaders`, in force for this thread. */
  sensitiveHeaders?: readonly string[]
  /** Epoch milliseconds, with fraction. */
  now?: () => number
}

/** Creates the logging of a process. Modules get their Logger from it. */
export function createLogging(options: LoggingOptions): Logging {
  const { writer, level: initial = 'info', format = 'text', sensitiveHeaders, now = () => toEpochMs(performance.now()) } = options
  if (sensitiveHeaders !== undefined) setSensitiveHeaders(sensitiveHeaders)
  const formatLine = format === 'json' ? formatJson : formatText
  const scopes = new Map<string, ScopeLogger>()
  let spec = initial
  let levels = parseLevels(initial, 'PROXY_LOG or config.logging.level: ')
  const emit = (level: LogLevel, scope: string, message: string, fields: LogFields | undefined): void => {
    writer.write(formatLine(now(), level, scope, message, fields))
  }
  const logging: Logging = {
    format,
    writer,
    get level() {
      return spec
    },
    logger(scope) {
      let logger = scopes.get(scope)
      if (logger === undefined) scopes.set(scope, (logger = new ScopeLogger(scope, rankOf(levels, scope), emit)))
      return logger
    },
    setLevel(next) {
      levels = parseLevels(next)
      spec = next
      for (const logger of scopes.values()) logger.rank = rankOf(levels, logger.scope)
    },
    reset: () => logging.setLevel(initial),
  }
  return logging
}

type FormatLine = (epochMs: number, level: LogLevel, scope: string, message: string, fields?: LogFields) => string

/** `<time> TAB <level> TAB <scope> TAB <message> key=value …` */
const formatText: FormatLine = (epochMs, level, scope, message, fields) => {
  let line = `${formatTime(epochMs)}\t${level}\t${scope}\t${escapeControls(redactText(message))}`
  for (const name in fields) {
    const value = printable(name, fields[name])
    if (value !== undefined) line += ` ${name}=${quoteIfNeeded(typeof value === 'string' ? value : JSON.stringify(value))}`
  }
  return `${line}\n`
}

/** One JSON object: level, time, scope, msg, then the fields. */
const formatJson: FormatLine = (epochMs, level, scope, message, fields) => {
  const entry: Record<string, unknown> = { level, time: formatTime(epochMs), scope, msg: redactText(message) }
  for (const name in fields) entry[name in entry ? `field.${name}` : name] = printable(name, fields[name])
  return `${JSON.stringify(entry)}\n`
}

/** Makes a value printable: without credentials, errors as messages, circular structures as text. */
function printable(name: string, value: unknown): unknown {
  if (value === undefined || value === null) return undefined
  if (isSensitiveName(name) || value instanceof Redacted) return REDACTED
  if (value instanceof Error) return redactText(describeError(value))
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object') return value
  try {
    return JSON.parse(redactText(JSON.stringify(value, (key, inner: unknown) => (isSensitiveName(key) ? REDACTED : inner))))
  } catch {
    return '[unprintable]'
  }
}

/** Messages of an error and its causes, outermost first. */
export function describeError(error: Error): string {
  const seen = new Set<unknown>()
  const parts: string[] = []
  for (let current: unknown = error; current instanceof Error && !seen.has(current) && parts.length < 5; current = current.cause) {
    seen.add(current)
    if (current.message !== '' && parts.at(-1)?.endsWith(current.message) !== true) parts.push(current.message)
  }
  return parts.length > 0 ? parts.join(': ') : error.name
}

// A space, a quote or a control character would let a value forge a field or a line; C1 controls steer terminals.
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const unsafe = /[\0-\x20"\x7f-\x9f\u2028\u2029]/
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const needsEscape = /[\0-\x1f"\\\x7f-\x9f\u2028\u2029\ud800-\udfff]/
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const controls = /[\0-\x1f\x7f-\x9f\u2028\u2029]/g

/** Quotes the value as JSON if it could be read as several fields. */
export function quoteIfNeeded(value: string): string {
  return value === '' || unsafe.test(value) ? quote(value) : value
}

/** The value as a JSON string. */
export function quote(value: string): string {
  return needsEscape.test(value) ? escapeControls(JSON.stringify(value)) : `"${value}"`
}

function escapeControls(text: string): string {
  return text.replace(controls, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
