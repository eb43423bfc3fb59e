import { describe, expect, test } from '@jest/globals'
import { readText } from './tree.ts'

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly resolved?: string; readonly inBundle?: true; readonly link?: true }>>
}

/** Packages of a lockfile that npm downloads: neither the project itself, nor links, nor what another package's archive contains. */
function downloads(path: string) {
  const { packages } = JSON.parse(readText(path)) as Lockfile
  return Object.entries(packages).filter(([name, entry]) => name !== '' && !entry.inBundle && !entry.link)
}

describe.each(['package-lock.json', 'docs/site/package-lock.json'])('%s', (path) => {
  test('has a SHA-512 digest of every package that is downloaded', () => {
    const entries = downloads(path)
    expect(entries.length).toBeGreaterThan(50)
    expect(entries.filter(([, { integrity = '' }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity)).map(([name]) => name)).toEqual([])
  })

  test('takes every package from the registry of the machine', () => {
    expect(downloads(path).filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
  })
})
