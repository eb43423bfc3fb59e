import { expect, test } from '@jest/globals'
import { findCommands } from '../../../docs/site/console-blocks.ts'
import { navigation } from '../../../docs/site/navigation.ts'
import { listFiles, readText } from './tree.ts'

const listed = navigation.flatMap(({ pages }) => pages)

test('the sidebar of the documentation site has every page once', () => {
  // Decision records and messages are listed on pages of their own.
  const pages = listFiles('docs/**/*.md', 'docs/*.md').filter((path) => !/^docs\/(?:site\/|adr\/\d|reference\/messages\/(?!README))/.test(path))
  expect(listed.toSorted()).toEqual(pages.map((path) => path.replace('docs/', '')).toSorted())
})

test('docs/README.md links to every page of the guide', () => {
  const text = readText('docs/README.md')
  const guide = listed.filter((file) => file.startsWith('guide/'))
  expect(guide.filter((file) => !text.includes(`](${file})`))).toEqual([])
})

test('the packages of the documentation site come from the registry that is configured', () => {
  const { packages } = JSON.parse(readText('docs/site/package-lock.json')) as { readonly packages: Readonly<Record<string, { readonly resolved?: string }>> }
  expect(Object.values(packages).flatMap(({ resolved }) => resolved ?? [])).toEqual([])
})

test('the lockfile of the documentation site has every optional package, which npm ci requires', () => {
  const { packages } = JSON.parse(readText('docs/site/package-lock.json')) as {
    readonly packages: Readonly<Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>>
  }
  const optional = Object.values(packages).flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
  expect(optional.filter((name) => packages[`node_modules/${name}`] === undefined)).toEqual([])
})

test.each([
  ['$ make run\ngateway    default/web\n$ curl localhost\nok', '1010', 'make run\ncurl localhost'],
  ['$ cat <<EOF\na: 1\nEOF\na: 1', '1110', 'cat <<EOF\na: 1\nEOF'],
  ["$ cat <<'END' >x\n$ no prompt\nEND\n(no output)", '1110', "cat <<'END' >x\n$ no prompt\nEND"],
  ['$ curl \\\n  localhost\nok', '110', 'curl \\\n  localhost'],
])('a button copies the commands of a console block, without prompts and output: %j', (text, marks, copied) => {
  const commands = findCommands(text)
  expect(commands.map(({ isCommand }) => (isCommand ? 1 : 0)).join('')).toBe(marks)
  const shown = commands.filter(({ isCommand }) => isCommand)
  expect(
    text
      .split('\n')
      .filter((_, index) => commands[index]?.isCommand)
      .map((line, index) => (shown[index]?.hasPrompt ? line.slice(2) : line))
      .join('\n'),
  ).toBe(copied)
})
