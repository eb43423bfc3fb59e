import { expect, test } from '@jest/globals'
import { MethodScanner, scanMethod, type Scanned } from './scan.ts'

const known = (method: string | undefined, isRpc = true): Scanned => ({ method, isRpc, problem: undefined })

test.each<[string, Scanned]>([
  ['{"jsonrpc":"2.0","id":1,"method":"GetTask"}', known('GetTask')],
  [' { "method" : "tasks\\/get" , "jsonrpc":"2.0" }\n', known('tasks/get')],
  ['{"m\\u0065thod":"GetTask"}', known('GetTask', false)],
  ['{"params":{"method":"no","a":[1,{"jsonrpc":"}"}]},"method":"yes"}', known('yes', false)],
  ['{"a":"\\"method\\":\\\\","b":-1.5e3,"c":[true,false,null]}', known(undefined, false)],
  [`{"${'k'.repeat(2000)}":"${'v'.repeat(2000)}","method":"yes"}`, known('yes', false)],
  ['', known(undefined, false)],
  ['{}', known(undefined, false)],
])('the method of %s', (text, expected) => {
  expect(scanMethod(Buffer.from(text))).toEqual(expected)
})

test.each([
  ['{"method":"a","method":"b"}', 'several members'],
  ['{"method":"a","Method":"b"}', 'several members'],
  ['{"METHOD":"b"}', 'several members'],
  ['{"method":1}', 'not a string'],
  ['{"method":{"a":"b"}}', 'not a string'],
  ['{"method":null}', 'not a string'],
  [`{"method":"${'m'.repeat(600)}"}`, 'not a valid string'],
  ['{"method":"\\q"}', 'not a valid string'],
  ['[{"method":"a"}]', 'batches'],
  ['"method"', 'not a JSON object'],
  ['{"method":"a"}{"method":"b"}', 'not a JSON object'],
  ['{/*"method":"x",*/"method":"b"}', 'UTF-8'],
  ["{'method':'b'}", 'UTF-8'],
  ['\ufeff{"method":"b"}', 'UTF-8'],
  ['{"method":"a"', 'not JSON'],
  ['{"a":1]', 'not JSON'],
])('the method of %s cannot be known', (text, problem) => {
  const scanned = scanMethod(Buffer.from(text))
  expect([scanned.method, scanned.problem]).toEqual([undefined, expect.stringContaining(problem)])
})

test('a body in UTF-16 has a problem', () => {
  expect(scanMethod(Buffer.from('{"method":"a"}', 'utf16le')).problem).toContain('UTF-8')
})

test('a body can arrive in any pieces', () => {
  const text = '{"jsonrpc":"2.0","params":{"t":"\\\\\\"{"},"m\\u0065thod":"Get\\u0054ask"}'
  for (let size = 1; size < 9; size++) {
    const scanner = new MethodScanner()
    for (let at = 0; at < text.length; at += size) scanner.push(Buffer.from(text.slice(at, at + size)))
    expect(scanner.result(true)).toEqual(known('GetTask'))
  }
})

test('a body that has not arrived whole has no problem yet', () => {
  const scanner = new MethodScanner()
  scanner.push(Buffer.from('{"jsonrpc":"2.0",'))
  expect(scanner.result(false)).toEqual(known(undefined))
})
