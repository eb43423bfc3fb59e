import type { FieldSink } from '../field-sink.ts'
import { quote, quoteIfNeeded, type LogFormat } from '../log.ts'
import { redactValue } from '../redact.ts'
import { formatTime } from '../../../runtime/time.ts'

/** A line of the access log that is being written. */
export interface Line extends FieldSink {
  readonly text: string
}

/** Starts a line of the scope at level info. */
export function startLine(format: LogFormat, scope: string, epochMs: number): Line {
  return format === 'json' ? new JsonLine(scope, epochMs) : new TextLine(scope, epochMs)
}

class TextLine implements Line {
  #line: string

  constructor(scope: string, epochMs: number) {
    this.#line = `${formatTime(epochMs)}\tinfo\t${scope}`
  }

  get text(): string {
    return `${this.#line}\n`
  }

  plain(name: string, value: string | number): void {
    this.#line += ` ${name}=${value}`
  }

  foreign(name: string, value: string): void {
    this.#line += ` ${name}=${quoteIfNeeded(redactValue(value))}`
  }

  quoted(name: string, value: string): void {
    this.#line += ` ${name}=${quote(redactValue(value))}`
  }

  added(name: string, value: string | number | boolean): void {
    this.foreign(name.includes('=') ? quote(name) : quoteIfNeeded(name), String(value))
  }
}

/** Fields of every line; added fields must not use these names. */
const reserved: ReadonlySet<string> = new Set(['level', 'time', 'scope'])

class JsonLine implements Line {
  #line: string

  constructor(scope: string, epochMs: number) {
    this.#line = `{"level":"info","time":"${formatTime(epochMs)}","scope":"${scope}"`
  }

  get text(): string {
    return `${this.#line}}\n`
  }

  plain(name: string, value: string | number): void {
    this.#line += typeof value === 'number' ? `,"${name}":${value}` : `,"${name}":"${value}"`
  }

  foreign(name: string, value: string): void {
    this.#line += `,"${name}":${quote(redactValue(value))}`
  }

  quoted(name: string, value: string): void {
    this.#line += `,"${name}":${quote(redactValue(value))}`
  }

  added(name: string, value: string | number | boolean): void {
    // JSON cannot represent NaN and infinities.
    const isText = typeof value === 'string' || (typeof value === 'number' && !Number.isFinite(value))
    this.#line += `,${quote(reserved.has(name) ? `field.${name}` : name)}:${isText ? quote(redactValue(String(value))) : String(value)}`
  }
}
