import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import packageJson from '../../../package.json' with { type: 'json' }
import { listFiles, readText } from './tree.ts'

const { version } = packageJson

test.each(['charts/proxy/Chart.yaml', 'charts/proxy-crds/Chart.yaml'])('%s has the version of package.json', (path) => {
  expect(parse(readText(path))).toMatchObject({ version, appVersion: version })
})

/** A version of this project: after its name, as a tag of its images, or as the version of a chart or a release. */
const OWN =
  /(?:proxy-service|proxyctl)(?:\/releases\/download\/|[-_ @/])v?(\d+\.\d+\.\d+)|(?:VERSION|TAG)=v(\d+\.\d+\.\d+)|(?:charts\/[\w-]+|\bproxy(?:-crds)?) --version (\d+\.\d+\.\d+)|(?:proxy-service|localhost)\/(?:proxy|controller):v(\d+\.\d+\.\d+)/g

test('the pattern finds versions in the forms of the documentation', () => {
  const forms = [
    'proxy-service 1.0.0',
    'VERSION=v1.0.0',
    'charts/proxy --version 1.0.0',
    'localhost/proxy:v1.0.0',
    'proxy-service_1.0.0_amd64.deb',
    'proxy-service/releases/download/v1.0.0/x',
    'proxyctl-1.0.0.tgz',
  ]
  for (const form of forms) expect([...form.matchAll(OWN)]).toHaveLength(1)
})

test('documentation, charts, Makefile and results of benchmarks name one version of this project', () => {
  const paths = [...listFiles('*.md', '*/*.md', '*/*/*.md', 'docs/**/*.md', 'e2e/**/*.md', 'Makefile', 'charts/**/*.yaml')].filter(
    (path) => !/^(?:CHANGELOG|UPGRADING)\.md$/.test(path),
  )
  expect(paths.length).toBeGreaterThan(100)
  const found = paths.flatMap((path) =>
    [...readText(path).matchAll(OWN)].map((match) => ({ path, text: match[0], found: match.slice(1).find((part) => part !== undefined) })),
  )
  expect(found.length).toBeGreaterThan(20)
  expect(found.filter((place) => place.found !== version)).toEqual([])
})

test('each version of the changelog has a section in UPGRADING.md, in the same order', () => {
  const versionsOf = (path: string): readonly string[] => [...readText(path).matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, found = '']) => found)
  expect(versionsOf('UPGRADING.md')).toEqual(versionsOf('CHANGELOG.md'))
  expect(versionsOf('UPGRADING.md')[0]).toBe(version)
})

test('each page that names the placeholder of the registry says what it stands for', () => {
  const pages = listFiles('*.md', 'docs/guide/*.md', 'charts/**/*.md').filter((path) => path !== 'CHANGELOG.md' && readText(path).includes('ghcr.io/example'))
  expect(pages).not.toEqual([])
  expect(pages.filter((path) => !/`ghcr\.io\/example\/proxy-service`[^.]* (?:stands for|is a placeholder for|for) /.test(readText(path)))).toEqual([])
})
