import { describe, expect, test } from '@jest/globals'
import { listFiles, readText } from '../docs/tree.ts'
import { checkTitle, findTitles } from './titles.ts'

const files = listFiles('*.test.ts', '*.e2e.ts')

describe('titles of tests', () => {
  test('are sentences in every file', () => {
    const problems = files.flatMap((path) =>
      findTitles(path, readText(path)).flatMap(({ text, line }) => {
        const problem = checkTitle(text)
        return problem === undefined ? [] : [`${path}:${line}: "${text}" ${problem}`]
      }),
    )
    expect(files.length).toBeGreaterThan(200)
    expect(problems).toEqual([])
  })

  test('are found in calls of test, test.each and test.skip', () => {
    const source = "test('a b c', () => {})\ntest.each([1])(`d ${'x'} %s`, () => {})\ndescribe('x', () => { it.skip('e', f) })\nother('no')"
    expect(findTitles('a.test.ts', source)).toEqual([
      { text: 'a b c', line: 1 },
      { text: 'd %s %s', line: 2 },
      { text: 'x e', line: 3 },
    ])
  })

  test.each([
    ['to a buffered body is the answer', 'begins with "to"; begin with the subject'],
    ['of a megabyte and more comes through', 'begins with "of"; begin with the subject'],
    ['gets what patterns leave', 'begins with "gets"; begin with the subject'],
    ['CSRF works', 'has fewer than three words; write a sentence'],
    ['a preflight from a foreign origin gets no CORS headers', undefined],
    ['%s', undefined],
  ])('"%s" is judged: %s', (title, problem) => {
    expect(checkTitle(title)).toBe(problem)
  })
})
