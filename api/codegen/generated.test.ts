import { describe, expect, test } from '@jest/globals'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configDefinitions } from '../config/definitions.ts'
import { messageKinds } from '../config/message-kinds.ts'
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

  test('writes the reachable types with the descriptions of their uses', async () => {
    const text = await toTypes(small, ['Pet'])
    expect([...text.matchAll(/export (?:interface|type) (\w+)/g)].map(([, name]) => name)).toEqual(['Name', 'Owner', 'Pet'])
    expect(text).toContain('  name: Name\n')
    expect(text).toContain('  owners?: Owner[]\n')
    expect(text).toContain('Other name. Default: "none".')
    expect(text).toContain('[k: string]: string')
  })

  test('re-exports types of another file, and imports those that its own types refer to', async () => {
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

test('toMessageTypes has a line for each kind of message', () => {
  expect(toMessageTypes({ pet: 'Pet', tcpPet: 'TcpPet' })).toContain('export interface MessageTypes {\n  pet: Pet\n  tcpPet: TcpPet\n}\n')
})

describe('reference pages', () => {
  const pages = toReferencePages(definitions, kinds, configDefinitions, Object.values(messageKinds))

  test.each(Object.entries(pages).filter(([path]) => !path.endsWith('README.md')))('each link in %s has a heading', (_, text) => {
    const headings = new Set([...text.matchAll(/^## (\w+)$/gm)].map(([, name]) => `#${name?.toLowerCase()}`))
    const missing = [...text.matchAll(/\]\((#[^)]+)\)/g)].map(([, anchor]) => anchor).filter((anchor) => !headings.has(anchor ?? ''))
    expect(missing).toEqual([])
  })

  test('have tables of five columns whatever the descriptions contain', () => {
    const rows = Object.values(pages).flatMap((text) => text.split('\n').filter((line) => line.startsWith('| `')))
    expect(rows.filter((line) => line.replaceAll('\\|', '').split('|').length !== 7)).toEqual([])
    expect(rows.length).toBeGreaterThan(400)
  })

  test('have an index that links every page', () => {
    for (const { singular } of kinds) expect(pages['docs/reference/README.md']).toContain(`(${singular}.md)`)
  })
})

describe('the OpenAPI document', () => {
  const document = JSON.parse(toOpenApiDocument(definitions, kinds)) as { components: { schemas: Record<string, unknown> } }

  test('resolves every reference', () => {
    const names = [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name ?? '')
    expect(names.filter((name) => !(name in document.components.schemas))).toEqual([])
  })

  test('contains exactly the definitions that are reachable from the kinds', () => {
    const names = kinds.map(({ kind }) => kind)
    expect(Object.keys(document.components.schemas)).toEqual(reachableFrom(definitions, names))
  })
})

describe('writeDifference', () => {
  test('writes stale files, removes orphaned ones, and leaves no difference', async () => {
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
