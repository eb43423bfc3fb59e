import { describe, expect, test } from '@jest/globals'
import { createModelScanner } from './multipart.ts'

const part = (name: string, value: string, more = ''): string => `--xx\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
const end = '--xx--\r\n'
const type = 'multipart/form-data; boundary=xx'

/** The models that are found if the body arrives in chunks of this size. */
function scan(body: string, chunkBytes: number, contentType = type): string[] {
  const found: string[] = []
  const scanner = createModelScanner(contentType, (model) => void found.push(model))
  const bytes = Buffer.from(body)
  for (let at = 0; at < bytes.length; at += chunkBytes) scanner?.push(bytes.subarray(at, at + chunkBytes))
  return found
}

const file = part('file', 'RIFF'.repeat(3000), '; filename="a.wav"\r\nContent-Type: audio/wav')

describe('the model of a multipart body', () => {
  test.each<[string, string, string[], string?]>([
    ['the first field', part('model', 'whisper-1') + file + end, ['whisper-1']],
    ['a field after a file', file + part('model', 'whisper-1') + end, ['whisper-1']],
    ['a field with a type', part('model', 'whisper-1', '\r\nContent-Type: text/plain') + end, ['whisper-1']],
    ['a field of a quoted boundary', part('model', 'm') + end, ['m'], 'multipart/form-data; charset=utf-8; boundary="xx"'],
    ['only the first of two', part('model', 'a') + part('model', 'b') + end, ['a']],
    ['no field of another name', part('model2', 'a') + part('prompt', 'name="model"') + end, []],
    ['no value over 1 KiB', part('model', 'x'.repeat(2000)) + end, []],
    ['no field that is not closed', '--xx\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1', []],
    ['no body of another type', part('model', 'a') + end, [], 'application/json'],
  ])('is %s, wherever chunks end', (_, body, expected, ...rest) => {
    for (const size of [1, 7, 64, 1000, 100_000]) expect([size, scan(body, size, ...rest)]).toEqual([size, expected])
  })

  test('is searched in linear time', () => {
    const found: string[] = []
    const scanner = createModelScanner(type, (model) => void found.push(model))
    const hostile = Buffer.from('\r\n--xx\r\ncontent-disposition: '.repeat(2000))
    for (let count = 0; count < 100; count++) scanner?.push(hostile)
    expect(found).toEqual([])
  })
})
