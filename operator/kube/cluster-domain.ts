import { readFile } from 'node:fs/promises'

const DEFAULT = 'cluster.local'

/** The cluster's DNS domain, from the search list that the kubelet writes to every pod (`<namespace>.svc.<domain>`); elsewhere `cluster.local`. */
export async function findClusterDomain(file = '/etc/resolv.conf'): Promise<string> {
  return parseClusterDomain(await readFile(file, 'utf8').catch(() => ''))
}

/** @param text content of a resolv.conf */
export function parseClusterDomain(text: string): string {
  const searched = text.split('\n').flatMap((line) => (/^\s*search\s/.test(line) ? line.trim().split(/\s+/).slice(1) : []))
  // `svc.<domain>` and `<namespace>.svc.<domain>` are both in it; the host's own domains may be, too.
  const found = searched.map((domain) => /^(?:[^.]+\.)?svc\.(.+?)\.?$/.exec(domain)?.[1]).find((domain) => domain !== undefined)
  return found ?? DEFAULT
}
