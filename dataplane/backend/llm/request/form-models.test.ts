import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { boundaryOfChecked, FormModels } from './form-models.ts'

const part = (head: string, content: string): string => `--b\r\n${head}\r\n\r\n${content}\r\n`
const field = (name: string, value: string): string => part(`Content-Disposition: form-data; name="${name}"`, value)
const file = part('Content-Disposition: form-data; name="file"; filename="a b.wav"\r\nContent-Type: audio/wav', 'RIFF\r\n\0\r\n--a')
const end = '--b--\r\n'

/** Models that are found, with the body in pieces that end at the given positions. */
function read(body: string, cuts: readonly number[] = []): string[] {
  const bytes = Buffer.from(body)
  const models: string[] = []
  const reader = new FormModels('b', (model) => models.push(model))
  const at = [0, ...cuts.map((cut) => cut % bytes.length), bytes.length].toSorted((a, b) => a - b)
  for (let nth = 1; nth < at.length; nth++) reader.push(bytes.subarray(at[nth - 1], at[nth]))
  reader.end()
  return models
}

test('the model of a form is found wherever it is, in pieces of any size', () => {
  const bodies = [field('model', 'whisper-1') + file, file + field('model', 'whisper-1'), field('prompt', '') + field('model', 'whisper-1') + field('n', '1')]
  fc.assert(
    fc.property(fc.constantFrom(...bodies), fc.array(fc.nat(500), { maxLength: 30 }), (body, cuts) => {
      expect(read(body + end, cuts)).toEqual(['whisper-1'])
    }),
    { numRuns: 200 },
  )
})

test('a form without a model has none', () => expect(read(file + end)).toEqual([]))

describe('a form in which a server may find another model is rejected', () => {
  const good = field('model', 'a')
  test.each<[string, string]>([
    ['a repeated model', good + field('model', 'b') + end],
    ['a model in another spelling', good + field('Model', 'b') + end],
    ['a list of models', good + field('model[]', 'b') + end],
    ['a model between delimiters with LF only', good + part('Content-Disposition: form-data; name="x"', `y\n${field('model', 'b')}`) + end],
    ['a delimiter in a line', good + field('x', 'y--b\r\n') + end],
    ['a delimiter that goes on', `${good}--bc\r\n${end}`],
    ['two names', good + part('Content-Disposition: form-data; name="x"; name="model"', 'b') + end],
    ['a name with an escape', good + part('Content-Disposition: form-data; name="mod\\el"', 'b') + end],
    ['a name behind a file name', good + part('Content-Disposition: form-data; name="x"; filename="a\\"; name=\\"model"', 'b') + end],
    ['a name in another charset', good + part("Content-Disposition: form-data; name*=UTF-8''model", 'b') + end],
    ['two dispositions', good + part('Content-Disposition: form-data; name="x"\r\nContent-Disposition: form-data; name="model"', 'b') + end],
    ['a folded line', good + part('Content-Disposition: form-data;\r\n name="model"', 'b') + end],
    ['no disposition', good + part('Content-Type: text/plain', 'b') + end],
    ['an encoded part', part('Content-Disposition: form-data; name="model"\r\nContent-Transfer-Encoding: base64', 'YQ==') + end],
    ['a preamble', `x\r\n${good}${end}`],
    ['bytes after the end', `${good}${end}--b\r\n`],
    ['no end', good],
    ['an empty model', field('model', '') + end],
    ['a long model', field('model', 'm'.repeat(257)) + end],
    ['a long head', part(`X: ${'x'.repeat(9000)}\r\nContent-Disposition: form-data; name="x"`, '') + end],
  ])('%s', (_, body) => {
    for (const cuts of [[], Array.from({ length: body.length }, (__, at) => at)]) expect(() => read(body, cuts)).toThrow('the form is not valid')
  })

  test.each([
    ['multipart/form-data', 'one boundary'],
    ['multipart/form-data; boundary=a; boundary=b', 'one boundary'],
    ['multipart/mixed; boundary=a', 'one boundary'],
    [`multipart/form-data; boundary=${'a'.repeat(71)}`, 'one boundary'],
    ['application/x-www-form-urlencoded', 'send the form as multipart/form-data'],
  ])('of type %s', (type, text) => expect(() => boundaryOfChecked(type, undefined)).toThrow(text))

  test('with a content coding', () => expect(() => boundaryOfChecked('multipart/form-data; boundary=b', 'gzip')).toThrow())
})

test('a long file is searched in time proportional to its length, without keeping it', () => {
  const reader = new FormModels('b', () => undefined)
  reader.push(Buffer.from(file.slice(0, -2)))
  const chunk = Buffer.alloc(64 * 1024, '\r\n-')
  for (let count = 0; count < 256; count++) reader.push(chunk)
  reader.push(Buffer.from(`\r\n${end}`))
  expect(() => reader.end()).not.toThrow()
})
