# Keys, certificates and kubeconfigs of a cluster.

new_key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)

make_authority() {
  openssl req -x509 "${new_key[@]}" -days 30 -subj /CN=svc-test-authority -keyout "$dir/pki/ca.key" -out "$dir/pki/ca.crt" \
    -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature 2>/dev/null
}

# make_certificate FILE SUBJECT [NAMES]: signed by the cluster's authority.
make_certificate() {
  local file=$dir/pki/$1
  [ -e "$file.crt" ] && return
  openssl req "${new_key[@]}" -subj "$2" -keyout "$file.key" -out "$file.csr" 2>/dev/null
  printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:+subjectAltName=$3}" > "$file.ext"
  # Random serial numbers, because several are made at once.
  openssl x509 -req -in "$file.csr" -CA "$dir/pki/ca.crt" -CAkey "$dir/pki/ca.key" -set_serial "0x$(openssl rand -hex 8)" -days 30 \
    -extfile "$file.ext" -out "$file.crt.new" 2>/dev/null
  mv "$file.crt.new" "$file.crt"
}

# The context's name identifies the cluster; users may rename it in a copy.
make_kubeconfig() {
  cat > "$dir/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
clusters:
  - { name: test, cluster: { server: 'https://$(api_address):6443', certificate-authority: '$dir/pki/ca.crt' } }
users:
  - { name: $1, user: { client-certificate: '$dir/pki/$1.crt', client-key: '$dir/pki/$1.key' } }
contexts:
  - { name: test, context: { cluster: test, user: $1 } }
current-context: test
END
}

# make_user NAME SUBJECT
make_user() {
  make_certificate "$1" "$2"
  make_kubeconfig "$1"
}

make_keys() {
  local names job jobs=()
  names="IP:127.0.0.1,IP:$(api_address),IP:$(first_service_address),DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  make_authority
  make_certificate apiserver /CN=kube-apiserver "$names" & jobs+=($!)
  make_certificate apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client & jobs+=($!)
  make_user admin /O=system:masters/CN=admin & jobs+=($!)
  make_user controllers /CN=system:kube-controller-manager & jobs+=($!)
  make_user scheduler /CN=system:kube-scheduler & jobs+=($!)
  make_user proxy /CN=system:kube-proxy & jobs+=($!)
  (openssl genrsa -out "$dir/pki/accounts.key" 2048 && openssl rsa -in "$dir/pki/accounts.key" -pubout -out "$dir/pki/accounts.pub") 2>/dev/null & jobs+=($!)
  for job in "${jobs[@]}"; do wait "$job"; done
}

cmd_certificate() {
  make_user "$1" "/O=$2/CN=$1"
  echo "$dir/$1.kubeconfig"
}
