import type { Step } from '../common/neutral.ts'
import type { ClientEvent, StreamOptions } from '../common/types.ts'
import { FrameScanner, type Frame } from './frames.ts'
import { UniqueIds } from '../common/unique-ids.ts'
import { parsePlain } from './native.ts'
import { parseFields, SseScanner, type SseEvent } from './sse.ts'
import type { SseReader, StepWriter } from './steps.ts'
import { MAX_EVENT_BYTES, UpstreamStream } from './upstream.ts'

/** Converts the upstream's bytes to steps. */
export interface StepSource {
  readonly pending: number
  readonly needsTerminator: boolean
  push(chunk: Buffer): Step[]
  end(): Step[]
}

/** A source of steps from server-sent events. */
export function readSse(reader: SseReader): StepSource {
  const scanner = new SseScanner()
  const read = ({ raw }: SseEvent): Step[] => {
    const { name, data } = parseFields(raw)
    return data === undefined ? [] : reader.read(name, parsePlain(data), data)
  }
  return {
    needsTerminator: reader.needsTerminator,
    get pending() {
      return scanner.pending
    },
    push: (chunk) => scanner.push(chunk).flatMap(read),
    end() {
      const last = scanner.end()
      return last ? read(last) : []
    },
  }
}

/** A source of steps from AWS event stream frames. */
export function readFrames(reader: { read(frame: Frame): Step[] }, maxBytes: number = MAX_EVENT_BYTES): StepSource {
  const scanner = new FrameScanner(maxBytes)
  return {
    needsTerminator: false,
    get pending() {
      return scanner.pending
    },
    push(chunk) {
      const steps = scanner.push(chunk).flatMap((frame) => reader.read(frame))
      if (scanner.error !== undefined) steps.push({ type: 'error', errorType: 'upstream_error', message: scanner.error })
      return steps
    },
    end: () => [],
  }
}

/** A stream in another format than the client's: converts bytes to steps, and steps to the client's events. */
export class TranslatedStream extends UpstreamStream {
  readonly #source: StepSource
  readonly #writer: StepWriter
  readonly #toolNames: ReadonlyMap<string, string>
  readonly #ids = new UniqueIds()

  /** `toolNames`: names of tools at the upstream -> of the client. */
  constructor(source: StepSource, writer: StepWriter, toolNames: ReadonlyMap<string, string>, options?: StreamOptions) {
    super(options)
    this.#source = source
    this.#writer = writer
    this.#toolNames = toolNames
  }

  protected get pending(): number {
    return this.#source.pending
  }

  protected get needsTerminator(): boolean {
    return this.#source.needsTerminator
  }

  protected read(chunk: Buffer): readonly ClientEvent[] {
    return this.#write(this.#source.push(chunk))
  }

  protected readRest(): readonly ClientEvent[] {
    return this.#write(this.#source.end())
  }

  protected writeEnd(): readonly ClientEvent[] {
    return this.#writer.write({ type: 'done' })
  }

  protected writeError(errorType: string, message: string): readonly ClientEvent[] {
    return this.#writer.write({ type: 'error', errorType, message })
  }

  #write(steps: readonly Step[]): ClientEvent[] {
    const out: ClientEvent[] = []
    for (const read of steps) {
      if (this.isOver) break
      const step = read.type === 'toolStart' ? { ...read, id: this.#ids.of(read.id), name: this.#toolNames.get(read.name) ?? read.name } : read
      this.recorder.record(step)
      out.push(...this.#writer.write(step))
      if (step.type === 'done' || step.type === 'error') this.close()
    }
    return out
  }
}
