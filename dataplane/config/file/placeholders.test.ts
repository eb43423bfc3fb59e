import { withoutCodes } from '#api/messages/code.ts'
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { loadConfigFile } from './file.ts'
import { followConfigFile } from './follow.ts'
import { ConfigFileError, type ConfigFileOptions } from './problem.ts'
import { readConfigFile } from './read.ts'
import { createConfigStore } from '../store.ts'
import { until } from '../../../e2e/harness/wait.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'placeholders-'))
  await writeFile(join(directory, 'key.txt'), 'key-of-the-file\n')
  await writeFile(join(directory, 'large.txt'), 'x'.repeat(1024 * 1024 + 1))
  await mkdir(join(directory, 'directory'))
})
afterAll(() => rm(directory, { recursive: true }))

const env = { KEY: 'sk-very-secret', PORT: '8123', EMPTY: '', ODD: 'a: {b}\n- "c" # d', BAD_HOST: 'host-without-port', BAD_CEL: 'secret-token ==', LIMIT: '12' }

async function write(text: string): Promise<string> {
  const path = join(directory, 'gateway.yaml')
  await writeFile(path, text)
  return path
}

async function load(text: string, options: ConfigFileOptions = { env }): Promise<Awaited<ReturnType<typeof loadConfigFile>>> {
  return loadConfigFile(await write(text), options)
}

/** Problems of a file, with the directory cut off. */
async function problemsOf(text: string, options: ConfigFileOptions = { env }): Promise<string[]> {
  try {
    await load(text, options)
    return []
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    return error.problems.map((problem) => {
      expect(problem).toMatch(/ \[PX30\d\d\]$/)
      return withoutCodes(problem.replace(`${directory}/`, ''))
    })
  }
}

/** A file with one secret; `text` is the value of an entry as it is written. */
const secret = (text: string): string => `secrets:\n- { key: a, type: opaque, data: { entry: ${text} } }\n`
const block = (text: string): string => `secrets:\n- key: a\n  type: opaque\n  data:\n    entry: ${text}\n`
async function entryOf(text: string): Promise<unknown> {
  const { messages } = await load(text)
  const [message] = messages
  return message?.kind === 'secret' ? message.message.data?.['entry'] : undefined
}

describe('a placeholder in a config file', () => {
  test.each<[sentence: string, written: string, value: string]>([
    ['a variable', '${KEY}', 'sk-very-secret'],
    ['a variable in double quotes', '"${KEY}"', 'sk-very-secret'],
    ['a variable in single quotes', "'${KEY}'", 'sk-very-secret'],
    ['a variable in a longer text', '"Bearer ${KEY}!"', 'Bearer sk-very-secret!'],
    ['two adjacent variables', '${PORT}${PORT}', '81238123'],
    ['the value of a number as text', '${PORT}', '8123'],
    ['a value with the syntax of YAML', '${ODD}', 'a: {b}\n- "c" # d'],
    ['the default of a variable that is not set', '${NONE:-fallback}', 'fallback'],
    ['the default of an empty variable', '${EMPTY:-fallback}', 'fallback'],
    ['an empty default', '"${NONE:-}"', ''],
    ['a default with the syntax of YAML', '${NONE:-"a": #b, [c]}', '"a": #b, [c]'],
    ['an empty variable', '"${EMPTY}"', ''],
    ['a file without its last line feed', '${file:key.txt}', 'key-of-the-file'],
    ['the default of a file that does not exist', '${file:none.txt:-fallback}', 'fallback'],
    ['the escaped text', '"$${KEY}"', '${KEY}'],
    ['text without a closing brace', '"${ KEY"', '${ KEY'],
    ['private-use characters beside a variable', '"\uE000\uE001${PORT}\uE002"', '\uE000\uE0018123\uE002'],
  ])('becomes %s', async (_, written, value) => {
    expect(await entryOf(secret(written))).toBe(value)
    expect(await entryOf(block(written))).toBe(value)
    if (written.startsWith('"') && !written.includes('\uE000'))
      expect(await entryOf(`{"secrets":[{"key":"a","type":"opaque","data":{"entry":${written}}}]}`)).toBe(value)
  })

  test('is never part of a text in which each of them is escaped', async () => {
    const piece = fc.constantFrom('$', '{', '}', '${', '$${', '${KEY}', '${file:a}', ':-', '"', '\\', '\n', ' ', '#', 'a', '\uE000', '\uE003')
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
        const text = pieces.join('')
        const written = JSON.stringify(text.replaceAll('${', () => '$${'))
        expect(await entryOf(`{"secrets":[{"key":"a","type":"opaque","data":{"entry":${written}}}]}`)).toBe(text)
        expect(await entryOf(block(written))).toBe(text)
      }),
      { numRuns: 100 },
    )
  })

  test('is a number or a boolean where the schema has one', async () => {
    const { messages } = await load(
      'binds:\n- { port: ${PORT}, addresses: [], listeners: [] }\nservices: [{ key: n/s, ports: [{ port: 80, endpoints: [{ address: a, port: 1, draining: "${NONE:-true}" }] }] }]\n',
    )
    expect(messages).toEqual(
      expect.arrayContaining([
        { kind: 'bind', message: { key: '8123/default/config', port: 8123, addresses: [] } },
        { kind: 'service', message: { key: 'n/s', ports: [{ port: 80, endpoints: [{ address: 'a', port: 1, draining: true }] }] } },
      ]),
    )
  })

  test('is replaced in values that aliases share', async () => {
    const { messages } = await load('secrets:\n- { key: a, type: opaque, data: &shared { entry: ${KEY} } }\n- { key: b, type: opaque, data: *shared }\n')
    expect(messages.map(({ message }) => ('data' in message ? message.data : undefined))).toEqual([{ entry: 'sk-very-secret' }, { entry: 'sk-very-secret' }])
  })

  test('is ignored in a comment', async () => {
    expect(await entryOf(`# \${NONE} \${}\n${block('a # ${NONE}')}`)).toBe('a')
  })
})

describe('a placeholder without a value is an error with its position', () => {
  test.each<[sentence: string, text: string, problem: string]>([
    [
      'a variable that is not set',
      secret('${NONE}'),
      'gateway.yaml:2:42: secrets[0].data.entry: the environment variable NONE is not set; set it, or write ${NONE:-default}',
    ],
    [
      'a variable within a text',
      secret('"a ${KEY} ${NONE}"'),
      'gateway.yaml:2:52: secrets[0].data.entry: the environment variable NONE is not set; set it, or write ${NONE:-default}',
    ],
    ['a file that does not exist', block('${file:none.txt}'), 'gateway.yaml:5:12: secrets[0].data.entry: ${file:none.txt}: no such file'],
    ['a directory', block('${file:directory}'), 'gateway.yaml:5:12: secrets[0].data.entry: ${file:directory}: is a directory; name a file'],
    ['a file that is too large', block('${file:large.txt}'), 'gateway.yaml:5:12: secrets[0].data.entry: ${file:large.txt}: is larger than 1048576 bytes'],
    ['a device', block('${file:/dev/zero}'), 'gateway.yaml:5:12: secrets[0].data.entry: ${file:/dev/zero}: is not a regular file'],
    [
      'another form',
      secret('${1X}'),
      'gateway.yaml:2:42: secrets[0].data.entry: ${1X} is not a placeholder; write ${NAME}, ${NAME:-default} or ${file:path}; for the text ${ write $${',
    ],
    [
      'the name of a field',
      'llm: { models: { ${KEY}: { openai: {} } } }',
      'gateway.yaml:1:18: llm.models: ${KEY} is the name of a field; placeholders are allowed in values only',
    ],
  ])('for %s', async (_, text, problem) => {
    expect(await problemsOf(text)).toEqual([problem])
  })

  test('for each of several placeholders', async () => {
    expect(await problemsOf('llm:\n  models:\n    a: { openai: { apiKey: ${A} } }\n    b: { openai: { apiKey: ${B} } }\n')).toEqual([
      expect.stringContaining('gateway.yaml:3:28: llm.models.a.openai.apiKey: the environment variable A is not set'),
      expect.stringContaining('gateway.yaml:4:28: llm.models.b.openai.apiKey: the environment variable B is not set'),
    ])
  })

  test('for more of them than the limit', async () => {
    expect(await problemsOf(`# ${'${A}'.repeat(10_001)}\n`)).toEqual(['gateway.yaml: has more than 10000 placeholders'])
  })
})

describe('an error about a value of a placeholder shows the placeholder', () => {
  test.each<[sentence: string, text: string, problem: string]>([
    ['of the wrong type', 'binds: [{ port: ${KEY}, listeners: [] }]', 'gateway.yaml:1:11: binds[0].port: must be an integer, is ${KEY}'],
    ['out of bounds', 'binds: [{ port: 7${PORT}, listeners: [] }]', 'gateway.yaml:1:11: binds[0].port: must be <= 65535, is 7${PORT}'],
    [
      'that is not one of the known',
      'binds: [{ port: 80, listeners: [{ protocol: "${KEY}" }] }]',
      'gateway.yaml:1:35: binds[0].listeners[0].protocol: must be one of HTTP, HTTPS, TLS, TCP, is ${KEY}',
    ],
    [
      'that is no host',
      'backends: [{ name: a, host: ${BAD_HOST} }]',
      'gateway.yaml:1:23: backends[0].host: must be host:port with a port of 1 to 65535, is ${BAD_HOST}',
    ],
    [
      'that is no duration',
      'config: { connectionTerminationDeadline: "${KEY}" }',
      'gateway.yaml:1:11: config.connectionTerminationDeadline: must be a duration such as 30s, is ${KEY}',
    ],
    ['that is no URL', 'mcp: { a: { url: ${KEY} } }', 'gateway.yaml:1:13: mcp.a.url: must be a URL that starts with http:// or https://, is ${KEY}'],
    [
      'that names no backend',
      'binds: [{ port: 80, listeners: [{ routes: [{ backends: [{ backend: ${KEY} }] }] }] }]',
      'gateway.yaml:1:59: binds[0].listeners[0].routes[0].backends[0].backend: ${KEY} is not the name of one of backends',
    ],
    ['that names no file', 'llm: { tls: { cert: ${KEY}, key: b }, models: { a: { openai: {} } } }', 'gateway.yaml:1:15: llm.tls.cert: ${KEY}: no such file'],
  ])('%s', async (_, text, problem) => {
    const problems = await problemsOf(text)
    expect(problems.join('\n')).not.toMatch(/sk-very-secret|host-without-port/)
    expect(problems).toContain(problem)
  })

  test('in warnings about expressions', async () => {
    const { warnings } = await load(
      'llm: { models: { a: { openai: {} } }, policies: { transformation: { request: { set: [{ name: a, value: "${BAD_CEL}" }] } } } }',
    )
    expect(warnings).toEqual([expect.stringContaining('llm.policies.transformation.request.set[0].value: the value of ${BAD_CEL} cannot work here')])
    expect(warnings.join()).not.toContain('secret-token')
  })
})

describe('a config file that is read together with a config stream', () => {
  test('keeps placeholders as text, and warns about them', async () => {
    const { messages, warnings } = await load(block('${KEY}'), { env, placeholders: 'literal' })
    expect(messages[0]?.message).toMatchObject({ data: { entry: '${KEY}' } })
    expect(warnings).toEqual([expect.stringContaining('gateway.yaml:5:12: ${KEY} is not replaced')])
    const { digests } = await load(block('${file:key.txt}'), { placeholders: 'literal' })
    expect([...digests.keys()].some((path) => path.endsWith('key.txt'))).toBe(false)
  })

  test('keeps them in the process that reads the file, too', async () => {
    const path = await write(block('${HOME}'))
    const { messages } = await readConfigFile(path, { placeholders: 'literal' })
    expect(messages[0]?.message).toMatchObject({ data: { entry: '${HOME}' } })
    const resolved = await readConfigFile(path)
    expect(resolved.messages[0]?.message).toMatchObject({ data: { entry: process.env['HOME'] } })
  })
})

test('a change of a file that a placeholder names is applied', async () => {
  await writeFile(join(directory, 'changing.txt'), 'one')
  const path = await write(block('${file:changing.txt}'))
  const store = createConfigStore()
  const followed = await followConfigFile({ path, store, first: await readConfigFile(path), pollMs: 50 })
  const entry = (): unknown => [...store.snapshot().secrets.values()][0]?.data?.['entry']
  expect(entry()).toBe('one')
  await writeFile(join(directory, 'changing.txt'), 'two')
  await until(() => entry() === 'two')
  followed.close()
})
