import { expect, test } from '@jest/globals'
import { messageKinds, type MessageKind } from '#api/config/message-kinds.ts'
import { refName, type Definitions, type Schema } from '#api/schema.ts'
import { realNameOf } from '#api/v1alpha1/real-names.ts'
import schema from '#gen/config/schema.json' with { type: 'json' }
import { withRealNames } from './real-names.ts'

const definitions = schema.$defs as unknown as Definitions

/** A value for each place of a definition where a field has a neutral name, with the path of the field. */
function* placesOf(node: Schema, definition: string, path: readonly string[], seen: readonly string[]): Generator<{ path: string[]; real: string }> {
  if (node.$ref !== undefined) {
    const name = refName(node.$ref)
    if (!seen.includes(name)) yield* placesOf(definitions[name] ?? {}, name, path, [...seen, name])
    return
  }
  if (node.items !== undefined) yield* placesOf(node.items, '', [...path, '[]'], seen)
  if (typeof node.additionalProperties === 'object') yield* placesOf(node.additionalProperties, '', [...path, 'any'], seen)
  for (const [field, child] of Object.entries(node.properties ?? {})) {
    const real = realNameOf(definition, field)
    if (real !== field) yield { path: [...path, field], real }
    yield* placesOf(child, '', [...path, field], seen)
  }
}

const nest = (path: readonly string[]): unknown => path.reduceRight<unknown>((inner, field) => (field === '[]' ? [inner] : { [field]: inner }), {})

test('every field of every message that has a neutral name is shown under the real one', () => {
  const found = (Object.keys(messageKinds) as MessageKind[]).flatMap((kind) =>
    [...placesOf(definitions[messageKinds[kind]] ?? {}, messageKinds[kind], [], [])].map(({ path, real }) => {
      const shown = JSON.stringify(withRealNames(kind, nest(path)))
      expect([kind, path.join('.'), shown.includes(`"${path.at(-1) ?? ''}"`), shown.includes(`"${real}"`)]).toEqual([kind, path.join('.'), false, true])
      return kind
    }),
  )
  expect(new Set(found)).toEqual(new Set(['backend', 'policy']))
  expect(found.length).toBeGreaterThan(30)
})
