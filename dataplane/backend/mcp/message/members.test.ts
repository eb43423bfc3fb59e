import { describe, expect, test } from '@jest/globals'
import { runSync } from '../../../runtime/cooperative.ts'
import { findAmbiguousMember as find } from './members.ts'

const findAmbiguousMember = (text: string, checksArguments: boolean) => runSync(find(text, checksArguments))

const message = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`

describe('findAmbiguousMember', () => {
  test.each([
    ['a message', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":{"b":[{"c":1},{"c":1}]}}}}'],
    ['a response', '{"jsonrpc":"2.0","id":1,"result":{"name":"x","name":"y"}}'],
    ['names in strings', message('{"name":"\\"name\\":1,{\\"name\\":[","arguments":{"a":"name\\\\","b":"}"}}')],
    ['equal names at different places', '{"name":1,"params":{"name":1,"ref":{"name":1},"_meta":{"name":1}},"id":{"name":1}}'],
    ['other spellings in params', message('{"Name":1,"URI":2}')],
    ['doubled members of unknown members', message('{"x":{"a":1,"a":2}}')],
  ])('accepts %s', (_, text) => expect(findAmbiguousMember(text, true)).toBeUndefined())

  test.each([
    ['method', '{"method":"tools/list","id":1,"method":"tools/call"}'],
    ['method', '{"method":"tools/list","m\\u0065thod":"tools/call"}'],
    ['id', '{"id":1,"params":{"id":1},"id":2}'],
    ['params', '{"params":{},"params":{"name":"x"}}'],
    ['Method', '{"method":"tools/list","Method":"tools/call"}'],
    ['Method', '{"id":1,"result":{},"Method":"tools/call"}'],
    ['param\u017f', '{"id":1,"param\u017f":{}}'],
    ['name', message('{"name":"x","arguments":{},"name":"y"}')],
    ['name', message('{"name":"x","n\\u0061me":"y"}')],
    ['uri', message('{"uri":"x","uri":"y"}')],
    ['arguments', message('{"arguments":{},"arguments":{}}')],
    ['name', message('{"ref":{"type":"ref/prompt","name":"x","name":"y"}}')],
    ['a', message('{"_meta":{"a":1,"a":2}}')],
  ])('finds %s in %s', (name, text) => {
    expect([findAmbiguousMember(text, true), findAmbiguousMember(text, false)]).toEqual([name, name])
  })

  test('finds doubled members at any depth of arguments if rules can read them', () => {
    const text = message('{"name":"x","arguments":{"list":[1,{"deep":{"a":1,"b":{},"a":2}}]}}')
    expect([findAmbiguousMember(text, true), findAmbiguousMember(text, false)]).toEqual(['a', undefined])
  })

  test('finds a doubled member among many', () => {
    const members = Array.from({ length: 1000 }, (_, index) => `"m${index}":${index}`).join()
    expect(findAmbiguousMember(message(`{${members}}`), true)).toBeUndefined()
    expect(findAmbiguousMember(message(`{${members},"m1":1}`), true)).toBe('m1')
  })

  test.each([
    ['members', `{${Array.from({ length: 99_000 }, (_, index) => `"\\u006b${index}":1`).join()}}`],
    ['objects', `[${Array.from({ length: 99_000 }, () => '{"a":1}').join()}]`],
    ['digits', `[${Array.from({ length: 99_000 }, () => '1234567890').join()}]`],
    ['escapes', `"${'\\"'.repeat(900_000)}"`],
  ])('works on many %s in short steps', (_, args) => {
    let steps = 0
    for (const work = find(message(`{"name":"x","arguments":${args}}`), true); work.next().done !== true;) steps++
    expect(steps).toBeGreaterThan(40)
  })
})
