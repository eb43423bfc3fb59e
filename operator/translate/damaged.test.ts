import { expect, test } from '@jest/globals'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { readChunk } from '../source/document.ts'
import { createSnapshot } from '../source/snapshot.ts'
import { translate } from './translate.ts'

/**
 * Half-written manifests, as a watched directory has them while someone types: nodes of the golden inputs are replaced by
 * something else, one at a time. Whatever the reader lets pass, translation has to cope with.
 */
type Path = readonly (string | number)[]
const root = join(import.meta.dirname, 'testdata')

function pathsOf(value: unknown, path: Path = []): Path[] {
  const own = path.length > 0 ? [path] : []
  if (typeof value !== 'object' || value === null) return own
  return [...own, ...Object.entries(value).flatMap(([key, child]) => pathsOf(child, [...path, Array.isArray(value) ? Number(key) : key]))]
}

function replace(value: unknown, [step, ...rest]: Path, by: unknown): unknown {
  if (step === undefined) return by
  const copy = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }
  Reflect.set(copy, step, replace(Reflect.get(copy, step), rest, by))
  return copy
}

/** A prime, so that each case is damaged in places of its own. */
const STRIDE = 41

test.each(readdirSync(root))('%s with one node damaged does not throw', (name) => {
  const documents = parseAllDocuments(readFileSync(join(root, name, 'in.yaml'), 'utf8')).map((document) => document.toJS() as unknown)
  const paths = pathsOf(documents).filter((_, index) => index % STRIDE === name.length % STRIDE)
  for (const path of paths) {
    for (const by of [null, {}, [], '', 0]) {
      const objects = (replace(documents, path, by) as unknown[])
        .flatMap((document) => readChunk(JSON.stringify(document)).items)
        .flatMap(({ object }) => object ?? [])
      expect(() => translate(createSnapshot(objects), { isStandalone: true })).not.toThrow()
    }
  }
})
