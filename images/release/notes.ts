import type { Target } from './target.ts'

/** Release notes: the section of the version in CHANGELOG.md, or "Unreleased" if there is none, and how to install the release. */
export function writeNotes(changelog: string, target: Target): string {
  const section = findSection(changelog, target.version) ?? findSection(changelog, 'Unreleased')
  if (section === undefined || section === '') throw new Error(`CHANGELOG.md has neither a section ${target.version} nor entries under "Unreleased"`)
  return `${section}\n\n${describeInstallation(target)}`
}

/** Text of a section without its heading, which may be `## 0.2.0`, `## [0.2.0]` or `## v0.2.0 - 2026-01-31`. */
function findSection(changelog: string, name: string): string | undefined {
  const lines = changelog.split('\n')
  const start = lines.findIndex(
    (line) =>
      line.startsWith('## ') &&
      line
        .slice(3)
        .replace(/^\[?v?/, '')
        .split(/[\] ]/, 1)[0] === name,
  )
  if (start === -1) return undefined
  const end = lines.findIndex((line, index) => index > start && line.startsWith('## '))
  return lines
    .slice(start + 1, end === -1 ? undefined : end)
    .join('\n')
    .trim()
}

function describeInstallation({ version, tag, repository, registry, npmScope }: Target): string {
  return `## Install

With the CRDs of Gateway API installed, by Helm:

    helm install proxy-crds oci://${registry}/charts/proxy-crds --version ${version}
    helm install proxy oci://${registry}/charts/proxy --version ${version} -n proxy-system --create-namespace --wait

or without Helm:

    kubectl apply --server-side -f https://github.com/${repository}/releases/download/${tag}/install.yaml

On one machine, as a Debian package with a service of systemd, by npm, or as one executable, each for a config file ([guide](https://github.com/${repository}/blob/${tag}/docs/guide/run.md)):

    curl -fsSLO https://github.com/${repository}/releases/download/${tag}/proxy-service_${version}_amd64.deb && sudo apt install ./proxy-service_${version}_amd64.deb
    npx ${npmScope}/proxy-service@${version} run gateway.yaml
    curl -fsSL https://github.com/${repository}/releases/download/${tag}/proxy-service-${version}-linux-amd64.tar.gz | tar -xz proxy-service

proxyctl as an executable (linux and darwin, amd64 and arm64), as a plugin of kubectl by krew, or by npm, which needs Node 22.19 or newer:

    curl -fsSL https://github.com/${repository}/releases/download/${tag}/proxyctl-${version}-linux-amd64.tar.gz | tar -xz proxyctl
    kubectl krew install --manifest-url https://github.com/${repository}/releases/download/${tag}/krew-proxyctl.yaml
    npm install --global ${npmScope}/proxyctl@${version}

## Verify

    sha256sum --check --ignore-missing SHA256SUMS
    gh attestation verify install.yaml --repo ${repository}
    cosign verify ${registry}/proxy:${tag} --certificate-oidc-issuer https://token.actions.githubusercontent.com \\
      --certificate-identity https://github.com/${repository}/.github/workflows/release.yaml@refs/tags/${tag}
`
}
