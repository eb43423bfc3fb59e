import { describe, expect, test } from '@jest/globals'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configDefinitions, messageKinds } from '../config/definitions.ts'
import { list, object, reachableFrom, ref, string, type Definitions } from '../schema.ts'
import { definitions } from '../v1alpha1/definitions.ts'
import { kinds } from '../v1alpha1/kinds.ts'
import { toOpenApiDocument } from './openapi.ts'
import { findDifference, writeDifference } from './output.ts'
import { toReferencePages } from './reference.ts'
import { findSharedTypes, toMessageTypes, toTypes } from './types.ts'

describe('toTypes', () => {
  const small: Definitions = {
    Name: string('A name.'),
    Owner: object('An owner.', { name: ref('Name', 'Own name.'), nick: { ...ref('Name', 'Other name.'), default: 'none' } }, ['name']),
    Pet: object('A pet.', {
      owners: list(ref('Owner', 'One owner.'), 'Owners.', 1, 2),
      tags: { type: 'object', additionalProperties: { type: 'string' }, description: 'Tags.' },
    }),
    Stray: object('Not reached.', {}),
  }

  test('named types, described uses, nothing else', async () => {
    const text = await toTypes(small, ['Pet'])
    expect([...text.matchAll(/export (?:interface|type) (\w+)/g)].map(([, name]) => name)).toEqual(['Name', 'Owner', 'Pet'])
    expect(text).toContain('  name: Name\n')
    expect(text).toContain('  owners?: Owner[]\n')
    expect(text).toContain('Other name. Default: "none".')
    expect(text).toContain('[k: string]: string')
  })

  test('types that another file declares are re-exported, and imported where a written type refers to them', async () => {
    const text = await toTypes(small, ['Pet'], { names: ['Name', 'Owner', 'Stray'], from: './other.ts' })
    expect([...text.matchAll(/export (?:interface|type) (\w+)/g)].map(([, name]) => name)).toEqual(['Pet'])
    expect(text).toContain("import type { Owner } from './other.ts'\nexport type { Name, Owner } from './other.ts'\n")
  })
})

test('findSharedTypes leaves out a type that differs, and every type that leads to it', () => {
  const left: Definitions = { Name: string('A name.'), Owner: object('An owner.', { name: ref('Name') }), Tag: string('A tag.'), Only: string('Left only.') }
  const right: Definitions = { ...left, Name: string('Another name.'), Only: string('Right only.') }
  expect(findSharedTypes(left, right)).toEqual(['Tag'])
})

test('the table of message kinds has a line for each', () => {
  expect(toMessageTypes({ pet: 'Pet', tcpPet: 'TcpPet' })).toContain('export interface MessageTypes {\n  pet: Pet\n  tcpPet: TcpPet\n}\n')
})

describe('reference pages', () => {
  const pages = toReferencePages(definitions, kinds, configDefinitions, Object.values(messageKinds))

  test.each(Object.entries(pages).filter(([path]) => !path.endsWith('README.md')))('%s: every link has its heading', (_, text) => {
    const headings = new Set([...text.matchAll(/^## (\w+)$/gm)].map(([, name]) => `#${name?.toLowerCase()}`))
    const missing = [...text.matchAll(/\]\((#[^)]+)\)/g)].map(([, anchor]) => anchor).filter((anchor) => !headings.has(anchor ?? ''))
    expect(missing).toEqual([])
  })

  test('tables have five columns whatever the text holds', () => {
    const rows = Object.values(pages).flatMap((text) => text.split('\n').filter((line) => line.startsWith('| `')))
    expect(rows.filter((line) => line.replaceAll('\\|', '').split('|').length !== 7)).toEqual([])
    expect(rows.length).toBeGreaterThan(400)
  })

  test('the index names every page', () => {
    for (const { singular } of kinds) expect(pages['docs/reference/README.md']).toContain(`(${singular}.md)`)
  })
})

describe('the OpenAPI document', () => {
  const document = JSON.parse(toOpenApiDocument(definitions, kinds)) as { components: { schemas: Record<string, unknown> } }

  test('every reference resolves', () => {
    const names = [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name ?? '')
    expect(names.filter((name) => !(name in document.components.schemas))).toEqual([])
  })

  test('it holds what the kinds lead to', () => {
    const names = kinds.map(({ kind }) => kind)
    expect(Object.keys(document.components.schemas)).toEqual(reachableFrom(definitions, names))
  })
})

describe('writeDifference', () => {
  test('writes what changed, removes what nothing generates, and then finds nothing to do', async () => {
    const root = await mkdtemp(join(tmpdir(), 'codegen-'))
    try {
      await mkdir(join(root, 'gen/old'), { recursive: true })
      await Promise.all([
        writeFile(join(root, 'gen/old/stale.ts'), ''),
        writeFile(join(root, 'gen/README.md'), 'by hand'),
        writeFile(join(root, 'gen/same.ts'), 'same'),
      ])
      const files = { 'gen/same.ts': 'same', 'gen/new/file.ts': 'new' }
      const difference = await findDifference(root, files, ['gen'])
      expect(difference).toEqual({ stale: ['gen/new/file.ts'], orphaned: ['gen/old/stale.ts'] })
      await writeDifference(root, files, difference)
      expect(await readFile(join(root, 'gen/new/file.ts'), 'utf8')).toBe('new')
      expect(await readdir(join(root, 'gen/old'))).toEqual([])
      expect(await findDifference(root, files, ['gen'])).toEqual({ stale: [], orphaned: [] })
    } finally {
      await rm(root, { recursive: true })
    }
  })
})
