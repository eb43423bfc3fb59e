import { describe, expect, test } from '@jest/globals'
import { Ajv } from 'ajv'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Document, isCollection, parse, visit } from 'yaml'
import { CONTROLLER_NAME, GATEWAY_GROUP } from '#api/names.ts'
import { messageKinds } from '#api/config/message-kinds.ts'
import { checkExpression } from '../program/expression.ts'
import { findTroubles } from '../program/report.ts'
import { loadManifests } from '../kube/manifests-testing.ts'
import type { TranslateOptions } from './common/context.ts'
import { translate } from './translate.ts'
import type { Condition, Translation } from '../model/translation.ts'

/**
 * testdata/<case>/in.yaml -> out.yaml. The first line of in.yaml says what the case shows; a line `# options: {...}`
 * sets TranslateOptions. UPDATE_GOLDEN=1 writes out.yaml anew; read the difference before you commit it.
 */
const root = join(import.meta.dirname, 'testdata')
const isUpdating = process.env['UPDATE_GOLDEN'] === '1'
if (isUpdating && process.env['CI'] === 'true') throw new Error('goldens are not written in CI')
if (isUpdating) for (const name of readdirSync(root)) if (!existsSync(join(root, name, 'in.yaml'))) rmSync(join(root, name), { recursive: true })

const configSchema = JSON.parse(readFileSync(join(import.meta.dirname, '../../gen/config/schema.json'), 'utf8')) as object
const ajv = new Ajv({ strict: false, allErrors: true, formats: { 'date-time': true, int32: true, int64: true } })
ajv.addSchema(configSchema, 'config')

const isCondition = (value: unknown): value is Condition => typeof value === 'object' && value !== null && 'observedGeneration' in value && 'reason' in value

/** Goldens are read by people: a condition is one line, PEM is a digest, our own group and controller go without saying. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string') return value.includes('-----BEGIN') ? `PEM ${createHash('sha256').update(value.trim()).digest('hex').slice(0, 8)}` : value
  if (isCondition(value)) return `${value.type}=${value.status} ${value.reason} @${value.observedGeneration}: ${value.message}`
  if (Array.isArray(value)) return value.map(shorten)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(
    ([key, child]) => !(key === 'group' && child === GATEWAY_GROUP) && !(key === 'controllerName' && child === CONTROLLER_NAME),
  )
  return Object.fromEntries(kept.map(([key, child]) => [key, shorten(child)]))
}

/** What fits into a line is written as one. */
function format(value: object): string {
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Collection: (_, node) => {
      node.flow = JSON.stringify(node).length < 150
    },
    Pair: (_, pair) => {
      if (isCollection(pair.value) && pair.value.items.length === 0) pair.value.flow = true
    },
  })
  return document.toString({ lineWidth: 0 })
}

function show(translation: Translation, problems: readonly string[], input: string): string {
  const gateways = Object.fromEntries(
    [...translation.gateways].map(([gateway, messages]) => {
      const byKind = Map.groupBy(messages, (message) => message.kind)
      return [gateway, Object.fromEntries([...byKind].map(([kind, list]) => [kind, list.map(({ message }) => shorten(message))]))]
    }),
  )
  const isWritten = (name: string): boolean => new RegExp(`kind: GatewayClass\nmetadata: \\{name: ${name}\\b`).test(input)
  const statuses = translation.statuses
    .filter(({ kind, name }) => kind !== 'GatewayClass' || isWritten(name))
    .map(({ kind, namespace, name, status }) => [`${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`, shorten(status)])
  return format({ ...(problems.length > 0 ? { problems } : {}), gateways, statuses: Object.fromEntries(statuses) as object })
}

interface CaseOptions extends Omit<TranslateOptions, 'keySets' | 'keySetErrors' | 'documents' | 'documentErrors' | 'pluginImages' | 'pluginImageErrors'> {
  readonly keySets?: Record<string, string>
  readonly keySetErrors?: Record<string, string>
  readonly documents?: Record<string, string>
  readonly pluginImages?: Record<string, string>
  readonly pluginImageErrors?: Record<string, string>
  readonly documentErrors?: Record<string, string>
}

function readOptions(text: string): TranslateOptions {
  const [, json = '{}'] = /^# options: (.*)$/m.exec(text) ?? []
  const {
    keySets = {},
    keySetErrors = {},
    documents = {},
    documentErrors = {},
    pluginImages = {},
    pluginImageErrors = {},
    ...options
  } = parse(json) as CaseOptions
  return {
    isStandalone: true,
    checkExpression,
    ...options,
    keySets: new Map(Object.entries(keySets)),
    keySetErrors: new Map(Object.entries(keySetErrors)),
    pluginImages: new Map(Object.entries(pluginImages)),
    pluginImageErrors: new Map(Object.entries(pluginImageErrors)),
    documents: new Map(Object.entries(documents).map(([id, content]) => [id, { bytes: Buffer.from(content) }])),
    documentErrors: new Map(Object.entries(documentErrors)),
  }
}

describe('translation', () => {
  const cases = readdirSync(root).toSorted()
  test('has at least sixty cases', () => expect(cases.length).toBeGreaterThanOrEqual(60))

  test.each(cases)('%s', async (name) => {
    const input = join(root, name, 'in.yaml')
    const text = readFileSync(input, 'utf8')
    const { snapshot, problems } = await loadManifests(input)
    const options = readOptions(text)
    const translation = translate(snapshot, options)
    expect(translate(snapshot, options)).toEqual(translation)
    const output = join(root, name, 'out.yaml')
    const actual = show(
      translation,
      problems.map((problem) => problem.text),
      text,
    )
    if (isUpdating) {
      for (const file of readdirSync(join(root, name))) if (file !== 'in.yaml') rmSync(join(root, name, file))
      writeFileSync(output, actual)
    }
    expect(actual).toBe(readFileSync(output, 'utf8'))
  })

  test.each(cases)('each problem in the statuses of %s ends with the code of a message', async (name) => {
    const input = join(root, name, 'in.yaml')
    const text = readFileSync(input, 'utf8')
    const { snapshot } = await loadManifests(input)
    const { statuses } = translate(snapshot, readOptions(text))
    // operator.md §4.8 fixes this text; Accepted of the same policy has the code.
    const own = findTroubles(statuses).filter(({ message }) => message !== 'Policy is not attached due to invalid status')
    expect(own.filter(({ message }) => !/ \[PX\d{4}\][;)]?/.test(message))).toEqual([])
  })

  test.each(cases)('messages of %s keep to the config contract', async (name) => {
    const input = join(root, name, 'in.yaml')
    const text = readFileSync(input, 'utf8')
    const { snapshot } = await loadManifests(input)
    for (const messages of translate(snapshot, readOptions(text)).gateways.values()) {
      for (const { kind, key, message } of messages) {
        expect((message as { key: string }).key).toBe(key)
        // Clients see some texts of the config.
        expect(JSON.stringify(message)).not.toMatch(/\[PX\d{4}\]/)
        const validate = ajv.getSchema(`config#/$defs/${messageKinds[kind]}`)
        expect({ key, errors: validate?.(message) ? [] : validate?.errors }).toEqual({ key, errors: [] })
      }
    }
  })
})
