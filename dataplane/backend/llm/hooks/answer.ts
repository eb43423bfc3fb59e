import type { LlmAnswer, LlmPart } from '#api/plugin/index.ts'
import { textOf } from '../common/read.ts'
import type { ClientFormat, JsonObject } from '../common/types.ts'
import { collectResponseTexts } from '../guards/texts.ts'
import type { StreamSubject } from '../guards/subject.ts'
import { runSync, type Cooperative } from '../../../runtime/cooperative.ts'
import { listIn, objectIn, partOf, TextChanges } from './parts.ts'

/** A response as hooks see it, and what they change in it. Methods throw an Error if a change cannot be applied. */
export interface AnswerView<Result> {
  readonly answer: LlmAnswer
  apply(output: unknown): Result
  /** The response with these texts, one for each part. */
  replace(texts: readonly string[]): Result
}

/** Reads a buffered response in the client's format. */
export function* viewAnswer(body: JsonObject, format: ClientFormat): Cooperative<AnswerView<JsonObject>> {
  const texts = yield* collectResponseTexts(body, format)
  const parts = texts.map((text, ref) => partOf(text, ref, body))
  const write = (changed: readonly unknown[]): JsonObject => {
    const changes = new TextChanges(texts)
    changes.read(changed, new Set(texts.keys()), 'parts')
    return changes.apply(body)
  }
  return {
    answer: { model: textOf(body['model']) ?? '', stream: false, parts },
    apply: (output) => write(partsIn(output)),
    replace: (all) => write(parts.map((part, nth) => ({ ...part, text: all[nth] }))),
  }
}

/** Reads a streamed response that was held back. */
export function viewHeld(subject: StreamSubject): AnswerView<void> {
  const kinds = subject.kinds()
  const texts = runSync(subject.texts())
  const parts = texts.map((text, ref): LlmPart => ({ ref, type: typeOf(kinds[ref]), text }))
  const replace = (all: readonly string[]): void => subject.replaceTexts(all)
  return {
    answer: { model: '', stream: true, parts },
    apply(output) {
      const changed = texts.slice()
      const seen = new Set<number>()
      for (const [nth, part] of partsIn(output).entries()) {
        const { ref, text } = objectIn(part, `parts[${nth}]`)
        if (typeof ref !== 'number' || texts[ref] === undefined || seen.has(ref))
          throw new TypeError(`parts[${nth}] has no ref of the parts; parts cannot be added`)
        if (typeof text !== 'string') throw new TypeError(`parts[${nth}].text is no string`)
        seen.add(ref)
        changed[ref] = text
      }
      if (seen.size < texts.length) throw new TypeError(`parts lack ${texts.length - seen.size}; parts cannot be removed, set their text to ''`)
      replace(changed)
    },
    replace,
  }
}

/** The type of a text in a stream, for hooks. */
export const typeOf = (kind: string | undefined): 'text' | 'reasoning' | 'json' => (kind === 'toolInput' ? 'json' : kind === 'reasoning' ? 'reasoning' : 'text')

const partsIn = (output: unknown): readonly unknown[] => listIn(objectIn(output, 'the answer')['parts'], 'parts')
