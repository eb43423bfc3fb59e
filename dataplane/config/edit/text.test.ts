import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { parse, stringify } from 'yaml'
import { EditError, editText, valueAt, type Path } from './text.ts'

const FILE = `# Our gateway
llm:
  models:
    # cheap
    small: { openai: { apiKey: "k" } }   # by hand
    large:
      openai:
        apiKey: 'k'   # key

  # after the models
  policies:
    budgets:
      - name: day
        limits: [ {requests: 1, window: Day} ]
      # end of list

# tail
mcp:
  files:
    command: [ a,b ]
`

const edit = (path: Path, text: string | null, file = FILE): string => editText(file, [{ path, text }])

/** Lines of one text that the other one lacks. */
const without = (one: string, other: string): string[] => {
  const lines = other.split('\n')
  return one.split('\n').filter((line) => !lines.includes(line))
}

describe('an edit of a config file', () => {
  test('replaces a list and leaves every other line as it is', () => {
    const after = edit(['llm', 'policies', 'budgets'], '- name: month\n  limits: [{ requests: 5, window: Month }] # at most')
    const [day, month] = [
      '- name: day\n        limits: [ {requests: 1, window: Day} ]',
      '- name: month\n        limits: [ { requests: 5, window: Month } ] # at most',
    ]
    expect(after).toBe(FILE.replace(day, month))
  })

  test('adds a field behind the others of its object', () => {
    const after = edit(['llm', 'models', 'large', 'policies', 'ai', 'promptGuard'], 'request: [{ regex: { builtins: [Ssn] } }]')
    expect(without(FILE, after)).toEqual([])
    expect(without(after, FILE)).toEqual([
      '      policies:',
      '        ai:',
      '          promptGuard:',
      '            request: [ { regex: { builtins: [ Ssn ] } } ]',
    ])
    expect(after.indexOf('promptGuard')).toBeLessThan(after.indexOf('# after the models'))
  })

  test('writes an object in braces without them if it gets a field', () => {
    const after = edit(['llm', 'models', 'small', 'policies', 'ai', 'promptGuard'], 'request: []')
    expect(without(FILE, after)).toEqual(['    small: { openai: { apiKey: "k" } }   # by hand'])
    expect(after).toContain('    small:\n      openai: { apiKey: "k" }\n      policies:\n')
  })

  test('removes a field, and the objects that were only for it', () => {
    const after = edit(['llm', 'policies', 'budgets'], null)
    expect(parse(after)).toEqual({ ...parse(FILE), llm: { models: parse(FILE).llm.models } })
    expect(after).toContain('# after the models')
  })

  test('keeps JSON as JSON with its indentation', () => {
    const json = JSON.stringify({ mcp: { files: { command: ['a'] } } }, null, 4)
    expect(edit(['mcp', 'files', 'tools'], 'include: [a]', json)).toBe(
      JSON.stringify({ mcp: { files: { command: ['a'], tools: { include: ['a'] } } } }, null, 4),
    )
  })

  test.each([
    ['a placeholder', '"${HOME}"'],
    ['a placeholder of a file', '${file:/etc/passwd}'],
    ['a value that is not shown', '"<redacted>"'],
    ['an alias', '*a'],
    ['an anchor', '&a [1]'],
    ['a tag', '!!js/function "x"'],
    ['several documents', '1\n---\n2'],
    ['no value', ''],
    ['null', 'null'],
    ['a long value', `"${'x'.repeat(70_000)}"`],
    ['text that is not YAML', '[1'],
    ['aliases that multiply', `[${'&a [1], *a, '.repeat(10)}]`],
  ])('rejects %s', (_, text) => {
    expect(() => edit(['llm', 'policies', 'budgets'], text)).toThrow(EditError)
  })

  test('rejects a file whose aliases multiply', () => {
    const bomb = `a: &a [1,1,1,1,1,1,1,1,1]\n${Array.from({ length: 9 }, (_, i) => `${'bcdefghij'[i]}: &${'bcdefghij'[i]} [${`*${'abcdefghij'[i]},`.repeat(9)}]`).join('\n')}\nmcp: {}\n`
    expect(() => edit(['mcp', 'x', 'tools'], '{}', bomb)).toThrow(/alias/)
  })

  test('rejects an entry that a list does not have, and a field of a text', () => {
    expect(() => edit(['llm', 'policies', 'budgets', 7], '1')).toThrow(EditError)
    expect(() => edit(['mcp', 'files', 'command', 0, 'x'], '1')).toThrow(EditError)
  })

  test('changes one value of any file and nothing else', () => {
    const name = fc.constantFrom('a', 'b', 'c d', '"', 'policies', 'ai', '1')
    const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constantFrom('a: b', '# no comment', 'x\ny\n', '- a', '*a', ''))
    const { tree } = fc.letrec((tie) => ({
      tree: fc.dictionary(name, tie('value'), { minKeys: 1, maxKeys: 4 }),
      value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('tree'), { maxLength: 3 }), tie('tree')),
    }))
    const value = fc.option(
      fc.oneof(
        leaf.filter((text) => text !== '' && !String(text).includes('${')),
        fc.array(fc.integer()),
      ),
    )
    fc.assert(
      fc.property(tree, fc.array(name, { minLength: 1, maxLength: 3 }), value, fc.boolean(), (file, path, given, isFlow) => {
        // A comment before each field of the file, where the line is no part of a text.
        const text = Object.entries(file)
          .map(
            ([field, inner], index) =>
              `# comment ${index}\n${stringify({ [field]: inner }, { lineWidth: 0, ...(isFlow && { collectionStyle: 'flow' as const }) }).replace(/^\{\s*(.*?),?\s*\}\n$/s, '$1\n')}`,
          )
          .join('')
        const change = () => edit(path, given === null ? null : stringify(given), text)
        const isObject = (at: unknown): boolean => at === undefined || (typeof at === 'object' && !Array.isArray(at))
        if (!path.every((_, depth) => isObject(valueAt(file, path.slice(0, depth)))) || (given === null && valueAt(file, path) === undefined))
          return void expect(change).toThrow(EditError)
        const after = change()
        if (given !== null || Object.keys(file).length > 1) for (const [comment] of text.matchAll(/# comment \d+/g)) expect(after).toContain(comment)
        expect(valueAt(parse(after), path)).toEqual(given ?? undefined)
      }),
      { numRuns: 300 },
    )
  })
})
