import { expect, test } from '@jest/globals'
import { navigation } from '../../../docs/site/navigation.ts'
import { listFiles, readText } from './tree.ts'

const listed = navigation.flatMap(({ pages }) => pages.map(({ file }) => file))

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
