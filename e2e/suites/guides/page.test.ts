import { describe, expect, test } from '@jest/globals'
import { checkYaml } from './check-yaml.ts'
import { findUnansweredCommands, matchesOutput, readCommands, readSections } from './page.ts'

const fence = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\`\n`

test('a page is split into sections with their blocks, the example to run, and blocks that are not checked', () => {
  const text = `# A page\n## One\n<!-- run: e2e/examples/cors -->\n${fence('yaml', '# no heading\na: 1')}## Two\n<!-- not checked: a file of nginx -->\n${fence('yaml', 'b: 2')}`
  expect(readSections('page.md', text)).toEqual([
    { page: 'page.md', heading: 'A page', line: 1, blocks: [], hasProblems: false },
    {
      page: 'page.md',
      heading: 'One',
      line: 2,
      run: 'e2e/examples/cors',
      hasProblems: false,
      blocks: [{ language: 'yaml', text: '# no heading\na: 1\n', line: 4 }],
    },
    { page: 'page.md', heading: 'Two', line: 8, hasProblems: false, blocks: [{ language: 'yaml', text: 'b: 2\n', line: 10, notChecked: 'a file of nginx' }] },
  ])
})

test('commands of a console block have the lines up to the next command as output', () => {
  const block = { language: 'console', text: '$ curl a \\\n  -H b\none\ntwo\n$ true\n', line: 5 }
  expect(readCommands(block)).toEqual([
    { command: 'curl a \\\n  -H b', output: 'one\ntwo', line: 6 },
    { command: 'true', output: undefined, line: 10 },
  ])
})

test('a command of a console block includes its here-document', () => {
  const block = { language: 'console', text: "$ cat - <<'EOF'\n$ a\nEOF\n$ a\n$ true\n(no output)\n", line: 1 }
  expect(readCommands(block)).toEqual([
    { command: "cat - <<'EOF'\n$ a\nEOF", output: undefined, line: 2 },
    { command: 'a', output: undefined, line: 5 },
    { command: 'true', output: '(no output)', line: 6 },
  ])
})

describe('a section', () => {
  const check = (text: string): string[] => readSections('page.md', `# A page\n${text}`).flatMap(findUnansweredCommands)

  test.each([
    ['a console block with an output', fence('console', '$ curl a\n200')],
    ['a shell block that is followed by its output', fence('sh', 'curl a') + fence('json', '{}')],
    ['a command of another machine', `<!-- not checked: it runs on a cluster -->\n${fence('sh', 'kubectl get pods')}`],
    ['no command', fence('yaml', 'curl: a')],
  ])('that has %s is accepted', (_, text) => {
    expect(check(text)).toEqual([])
  })

  test.each([
    [
      'a console block whose last command has no output',
      fence('console', '$ curl a\n200\n$ curl b'),
      'page.md:5: no output follows "curl b"; add it, or (no output)',
    ],
    ['a shell block', fence('sh', 'curl a'), 'page.md:2: a command without its output'],
    ['a block without a language', fence('', 'make run'), 'page.md:2: a command without its output'],
  ])('that has a command without an output is reported: %s', (_, text, problem) => {
    expect(check(text)).toEqual([expect.stringContaining(problem)])
  })
})

test.each([
  ['the same text', 'a\nb', 'a\nb\n', true],
  ['carriage returns and blanks at the end of lines', 'a', 'a \r\n', true],
  ['any text of a line for ...', '{"a":...}', '{"a":1,"b":2}\n', true],
  ['any number of lines for a line ...', 'a\n...\nd', 'a\nb\nc\nd\n', true],
  ['no output', '(no output)', '', true],
  ['an output where none is expected', '(no output)', 'a', false],
  ['another text', 'a.c', 'abc', false],
  ['a line too many', 'a', 'a\nb', false],
])('the output of a command is compared: %s', (_, expected, actual, matches) => {
  expect(matchesOutput(expected, actual)).toBe(matches)
})

describe('a YAML block', () => {
  test.each([
    ['an object', 'apiVersion: v1\nkind: Secret\nmetadata: { name: a }\n'],
    ['a part of a policy', 'traffic: { timeouts: { request: 1s } }'],
    ['a part of a backend', 'static: { host: example.com, port: 80 }'],
    ['a config file with a certificate that does not exist', 'binds: [{ port: 1, listeners: [{ tls: { cert: a.crt, key: a.key }, routes: [] }] }]'],
  ])('that is %s is accepted', async (_, text) => {
    expect(await checkYaml(text)).toEqual([])
  })

  test.each([
    [
      'an unknown field of an object',
      'apiVersion: proxy.dev/v1alpha1\nkind: ProxyBackend\nmetadata: { name: a }\nspec: { statik: {} }',
      'did you mean static?',
    ],
    ['an unknown field of a part', 'traffic: { timeout: 1s }', 'unknown field'],
    ['an expression that does not parse', 'traffic: { authorization: { policy: { matchExpressions: ["1 +"] } } }', '1 +'],
    ['an unknown field of a config file', 'binds: [{ prot: 1 }]', 'unknown field'],
    ['a first field that no kind has', 'shop: { a: 1 }', '"shop" is no field that a block may begin with'],
    ['invalid YAML', 'a: [', 'must'],
  ])('with %s is reported', async (_, text, problem) => {
    expect((await checkYaml(text)).join('\n')).toContain(problem)
  })
})
